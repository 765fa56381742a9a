import { afterAll, describe, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { SAMPLED } from '../support/sampled-tables.ts'
import { crashName } from './crash-table.ts'
import { CrashRuns } from './crash.ts'

/** `crash.long.test.ts` has more of the table. */
const CASES = SAMPLED.crash.sample()

describe('kill -9', requires('root', 'crun'), () => {
  const runs = new CrashRuns()
  afterAll(async () => runs.stop())

  it.each(CASES.map((one) => [crashName(one), one] as const))(
    'at %s leaves nothing behind, nothing in limbo and nothing untold',
    { timeout: 240_000 },
    async (_, one) => runs.run(one),
  )
})
