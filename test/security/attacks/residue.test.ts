import { describeHygiene } from './residue.ts'

describeHygiene('standard')
