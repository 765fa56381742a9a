import { describe } from 'vitest'
import { requires } from '../../../../test/support/requires.ts'
import { describeTorture } from './testing/torture-suite.ts'
import { BASH_ATTACKS } from './testing/torture-bash.ts'

describe('the torture table', requires('root'), () => {
  describeTorture('bash', BASH_ATTACKS)
})
