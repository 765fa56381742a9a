import { Airlock, type Sandbox } from '@airlock/sdk'
import { deadline, sleep, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suspendGuest } from '../support/suspend-guest.ts'

let server: TestServer
let airlock: Airlock
let admin: Airlock

beforeAll(async () => {
  server = await startServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
})
afterAll(async () => {
  await server?.stop()
})

describe('a guest that stands still', () => {
  // 8 s: longer than the grace after a deadline. 34 s: longer than the host and the control plane wait for any one answer.
  it.concurrent.each([
    [8, 15_000],
    [34, 15_000],
    [34, 60_000],
  ])(
    'for %i s starts what was asked for meanwhile, with a timeout of %i ms from then on',
    async (seconds, timeoutMs) => {
      const sandbox = await airlock.sandboxes.create()
      const wake = suspendGuest(server, sandbox.id)
      const fed = sandbox.run(['cat'], { stdin: { text: 'given' }, timeoutMs })
      const long = sandbox.run(['sleep', '600'], { timeoutMs })
      const short = sandbox.run({ shell: `sleep ${timeoutMs / 1000 - 3}; echo whole` }, { timeoutMs })
      await sleep(seconds * 1000)
      wake()
      expect(await fed).toMatchObject({ state: 'exited', exitCode: 0, stdout: 'given' })
      expect(await short).toMatchObject({ state: 'exited', exitCode: 0, stdout: 'whole\n' })
      expect(await long).toMatchObject({ state: 'exited', timedOut: true, cause: 'timeout' })
      expect((await airlock.sandboxes.get(sandbox.id)).data).toMatchObject({ state: 'active' })
      expect((await recorded(sandbox)).toSorted()).toEqual([
        'done',
        'done',
        'done',
        'requested',
        'requested',
        'requested',
      ])
    },
  )

  it('while its data plane dies runs what was asked for before, which nobody takes for refused', async () => {
    const sandbox = await airlock.sandboxes.create()
    const wake = suspendGuest(server, sandbox.id)
    // Whoever asked hears that the data plane does not answer.
    const asked = sandbox.run(['cat'], { stdin: { text: 'given' } }).catch((error: unknown) => error)
    const isAsked = async () => ((await recorded(sandbox)).length > 0 ? true : undefined)
    await waitFor(isAsked, { signal: deadline(100_000), everyMs: 50 })
    // The start is with the data plane a moment after its record.
    await sleep(1000)
    const before = pidOf(server.home, 'data-plane')
    if (before === undefined) throw new TypeError('there is no data plane')
    process.kill(before, 'SIGKILL')
    const isBack = () => (pidOf(server.home, 'data-plane') === before ? undefined : pidOf(server.home, 'data-plane'))
    await waitFor(isBack, { signal: deadline(100_000), everyMs: 50 })
    wake()
    await asked
    const ended = async () => (await sandbox.commands()).items.find(({ state }) => state !== 'running')
    expect(await waitFor(ended, { signal: deadline(100_000), everyMs: 100 })).toMatchObject({
      state: 'exited',
      exitCode: 0,
      outputBytes: 'given'.length,
    })
    const isRecorded = async () => ((await recorded(sandbox)).length > 1 ? recorded(sandbox) : undefined)
    const statuses = await waitFor(isRecorded, { signal: deadline(100_000), everyMs: 100 })
    expect(statuses.toSorted()).toEqual(['done', 'requested'])
  })
})

/** The statuses of the commands of a sandbox in the evidence. */
async function recorded(sandbox: Sandbox): Promise<readonly string[]> {
  const { items } = await admin.audit.events({ sandbox: sandbox.id, point: 'command.run' })
  return items.map(({ status }) => status)
}
