import { afterAll, describe, it } from 'vitest'
import { type CrashCase, CRASHES, crashName } from '../lifecycle/crash-table.ts'
import { CrashRuns } from '../lifecycle/crash.ts'
import { requires } from '../support/requires.ts'

/** Bytes are there, and no row says so. `crash.long.test.ts` has other moments. */
const CASES = ['artifact.staged of the data-plane'].map((name) => CRASHES.find((one) => crashName(one) === name))

describe('kill -9 while artifacts are kept', requires('root', 'crun'), () => {
  const runs = new CrashRuns()
  afterAll(async () => runs.stop())

  it.each(CASES.filter((one): one is CrashCase => one !== undefined).map((one) => [crashName(one), one] as const))(
    'at %s leaves each artifact whole or gone',
    { timeout: 240_000 },
    async (_, one) => runs.run(one),
  )
})
