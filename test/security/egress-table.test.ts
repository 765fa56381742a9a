import { SAMPLED } from '../support/sampled-tables.ts'
import { describeAttempts } from './egress-range.ts'

describeAttempts(SAMPLED.egress.sample())
