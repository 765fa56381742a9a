import { ATTEMPTS } from './egress-attempts.ts'
import { describeAttempts } from './egress-range.ts'

describeAttempts(ATTEMPTS)
