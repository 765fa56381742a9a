import { describe } from 'vitest'
import { describeTorture } from './testing/torture-suite.ts'
import { PYTHON_ATTACKS } from './testing/torture-python.ts'

const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)('the torture table', () => {
  describeTorture('python', PYTHON_ATTACKS)
})
