import { Airlock, AirlockError, type RunningCommand } from '@airlock/sdk'
import { waitFor } from '@airlock/std'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess } from '../../packages/cli/src/testing/cli-process.ts'
import { startServer, type TestServer } from '../support/server.ts'

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

const NUMBERS = Array.from({ length: 20_000 }, (_, at) => `${at + 1}\n`).join('')

async function fullOf(command: RunningCommand): Promise<string> {
  const chunks = await Array.fromAsync(command.fullOutput())
  return Buffer.concat(chunks).toString()
}

async function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => (error instanceof AirlockError ? error.code : error),
  )
}

describe('output over the cap', () => {
  it('is kept whole, and there for its owner alone, also when its sandbox is gone', async () => {
    const sandbox = await airlock.sandboxes.create()
    const result = await sandbox.run({ shell: 'seq 20000' }, { maxOutputBytes: 1000 })
    expect(result).toMatchObject({ truncated: true, outputBytes: 1000, stdout: NUMBERS.slice(0, 1000) })
    expect(result.fullOutput).toEqual({ bytes: NUMBERS.length, truncated: false })
    const command = sandbox.command(result.id)
    expect((await fullOf(command)) === NUMBERS).toBe(true)
    await admin.tenants.create('elsewhere')
    const { secret } = await admin.keys.create({ name: 'other', role: 'developer', tenant: 'elsewhere' })
    const other = await fetch(`${server.url}/v1/sandboxes/${sandbox.id}/commands/${result.id}/output/full`, {
      headers: { authorization: `Bearer ${secret}` },
    })
    expect([other.status, await other.json()]).toMatchObject([404, { error: { code: 'sandbox_not_found' } }])
    await sandbox.terminate()
    expect((await fullOf(command)) === NUMBERS).toBe(true)
    const env = { AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.developerKey }
    const { code, stdout } = await new CliProcess(['logs', sandbox.id, result.id, '--full'], { env }).ended
    expect([code, stdout === NUMBERS]).toEqual([0, true])
  })

  it('is nowhere else when it was not over', async () => {
    const sandbox = await airlock.sandboxes.create()
    const result = await sandbox.run({ shell: 'echo little' })
    expect([result.truncated, result.fullOutput]).toEqual([false, null])
    expect(await codeOf(fullOf(sandbox.command(result.id)))).toBe('output_not_kept')
    await sandbox.terminate()
  })

  const endings = {
    'a sandbox that lost its guest keeps it': { isSealed: true },
    'one that its caller ends does not': { isSealed: false },
  }
  it.each(Object.entries(endings))('of a command that had not ended: %s', async (_, { isSealed }) => {
    const sandbox = await airlock.sandboxes.create()
    const shell = 'seq 20000; sleep 1; touch said; sleep 600'
    const command = await sandbox.start({ shell }, { maxOutputBytes: 1000 })
    const isSaid = async () => sandbox.files.stat('/workspace/said').catch(() => undefined)
    await waitFor(isSaid, { signal: AbortSignal.timeout(20_000), everyMs: 50 })
    if (isSealed) killGuest(sandbox.id)
    else await sandbox.terminate()
    const isEnded = async () => ['stopped', 'error'].includes((await sandbox.refresh()).data.state) || undefined
    await waitFor(isEnded, { signal: AbortSignal.timeout(20_000), everyMs: 50 })
    if (isSealed) expect((await fullOf(command)) === NUMBERS).toBe(true)
    else expect(await codeOf(fullOf(command))).toBe('output_not_kept')
  })
})

function killGuest(sandbox: string): void {
  const isGuest = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('guest.cjs')
  const guest = server.processesOf(sandbox).find(isGuest)
  if (guest !== undefined) process.kill(guest, 'SIGKILL')
}
