import { describeHygiene } from './residue.ts'

describeHygiene('strict')
