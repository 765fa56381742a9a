import { describePrograms } from './programs.ts'

describePrograms('strict')
