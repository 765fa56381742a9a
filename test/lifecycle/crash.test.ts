import { afterAll, describe, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { sample } from '../support/sample.ts'
import { CRASHES, crashName, FAILED_ONCE } from './crash-table.ts'
import { CrashRuns } from './crash.ts'

/** One that the spill must bring the record of, and others each time; `crash.long.test.ts` has more of the table. */
const CASES = sample(
  CRASHES.filter(({ when }) => when === 'request'),
  {
    table: 'crash',
    count: 2,
    nameOf: crashName,
    always: ['kill.frozen of the control-plane', ...FAILED_ONCE.filter((name) => !name.endsWith('at its start'))],
  },
)

describe('kill -9', requires('root', 'crun'), () => {
  const runs = new CrashRuns()
  afterAll(async () => runs.stop())

  it.each(CASES.map((one) => [crashName(one), one] as const))(
    'at %s leaves nothing behind, nothing in limbo and nothing untold',
    { timeout: 240_000 },
    async (_, one) => runs.run(one),
  )
})
