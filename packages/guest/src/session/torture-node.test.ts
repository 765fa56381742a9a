import { describe } from 'vitest'
import { requires } from '../../../../test/support/requires.ts'
import { SAMPLED } from '../../../../test/support/sampled-tables.ts'
import { describeTorture } from './testing/torture-suite.ts'

describe('the torture table', requires('root'), () => {
  describeTorture('node', SAMPLED.guestTortureNode.sample())
})
