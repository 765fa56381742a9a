import { Airlock, AirlockError, type RunningCommand } from '@airlock/sdk'
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
})
