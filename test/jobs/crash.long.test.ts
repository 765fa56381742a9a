import { afterAll, describe, it } from 'vitest'
import { type CrashCase, CRASHES, crashName } from '../lifecycle/crash-table.ts'
import { CrashRuns } from '../lifecycle/crash.ts'
import { requires } from '../support/requires.ts'

/** Where the death of a process decides most; the crash tests of the whole table draw from the rest. */
const CASES = [
  'job.claimed of the control-plane',
  'job.command-named of the control-plane',
  'job.sandbox-made of the recorder',
  'job.result-written of the supervisor',
].map((name) => CRASHES.find((one) => crashName(one) === name))

describe('kill -9 during a job', requires('root', 'crun'), () => {
  const runs = new CrashRuns()
  afterAll(async () => runs.stop())

  it.each(CASES.filter((one): one is CrashCase => one !== undefined).map((one) => [crashName(one), one] as const))(
    'at %s leaves it ended once, and its effect at most once',
    { timeout: 240_000 },
    async (_, one) => runs.run(one),
  )
})
