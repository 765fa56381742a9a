import { Airlock, type Sandbox } from '@airlock/sdk'
import { sleep } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { suspendGuest } from '../support/suspend-guest.ts'

/** Longer than the host waits for a command past its deadline before it asks the guest to kill it. */
const LATE_MS = 5_500

let server: BorrowedServer
let airlock: Airlock
let sandbox: Sandbox

beforeAll(async () => {
  server = await borrowServer('off')
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  sandbox = await airlock.sandboxes.create()
})
afterAll(async () => server?.giveBack())

describe('a sandbox whose guest stands still for a while', () => {
  it('lives on, feeds what was asked for meanwhile, and ends what is past its deadline', async () => {
    const running = await sandbox.start(['sleep', '600'], { timeoutMs: 100 })
    const wake = suspendGuest(server, sandbox.id)
    const fed = sandbox.run(['cat'], { stdin: { text: 'given' } })
    // Its deadline counts from its start: before, it was overdue 5 s after it was asked for.
    const late = sandbox.run(['sleep', '600'], { timeoutMs: 100 })
    await sleep(LATE_MS)
    wake()
    expect(await fed).toMatchObject({ exitCode: 0, stdout: 'given' })
    expect(await late).toMatchObject({ state: 'exited', timedOut: true, cause: 'timeout' })
    expect(await running.wait()).toMatchObject({ state: 'exited', timedOut: true, cause: 'timeout' })
    expect((await airlock.sandboxes.get(sandbox.id)).data).toMatchObject({ state: 'active' })
  })
})
