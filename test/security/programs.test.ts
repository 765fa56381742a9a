import { describePrograms } from './programs.ts'

describePrograms('standard')
