import { describe } from 'vitest'
import { requires } from '../../../../test/support/requires.ts'
import { describeTorture } from './testing/torture-suite.ts'
import { NODE_ATTACKS } from './testing/torture-node.ts'

describe('the torture table', requires('root'), () => {
  describeTorture('node', NODE_ATTACKS)
})
