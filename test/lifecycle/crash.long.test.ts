import { afterAll, describe, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { SAMPLED } from '../support/sampled-tables.ts'
import { crashName, VICTIMS } from './crash-table.ts'
import { CrashRuns } from './crash.ts'

const CASES = SAMPLED.crashLong.sample()

// One server for each victim, side by side: they mostly wait.
describe.each(VICTIMS)('kill -9 of the %s', { concurrent: true, ...requires('root', 'crun') }, (victim) => {
  const runs = new CrashRuns()
  afterAll(async () => runs.stop())

  it.each(CASES.filter((one) => one.victim === victim).map((one) => [crashName(one), one] as const))(
    'at %s leaves nothing behind, nothing in limbo and nothing untold',
    { concurrent: false },
    async (_, one) => runs.run(one),
  )
})
