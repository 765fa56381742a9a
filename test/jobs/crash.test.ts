import { afterAll, describe, it } from 'vitest'
import { type CrashCase, CRASHES, crashName } from '../lifecycle/crash-table.ts'
import { CrashRuns } from '../lifecycle/crash.ts'
import { requires } from '../support/requires.ts'

/** The command may have begun, and one of those dies that know it. `crash.long.test.ts` has the other processes. */
const CASES = ['job.command-begun of the control-plane', 'job.command-begun of the data-plane'].map((name) =>
  CRASHES.find((one) => crashName(one) === name),
)

describe('kill -9 during a job', requires('root', 'crun'), () => {
  const runs = new CrashRuns()
  afterAll(async () => runs.stop())

  it.each(CASES.filter((one): one is CrashCase => one !== undefined).map((one) => [crashName(one), one] as const))(
    'at %s leaves it ended once, and its effect at most once',
    { timeout: 240_000 },
    async (_, one) => runs.run(one),
  )
})
