import { describe } from 'vitest'
import { SAMPLED } from '../../../../test/support/sampled-tables.ts'
import { describeTorture } from './testing/torture-suite.ts'

const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)('the torture table', () => {
  describeTorture('python', SAMPLED.guestTorturePython.sample())
})
