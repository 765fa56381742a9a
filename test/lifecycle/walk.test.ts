import { verifyExport } from '@airlock/audit'
import { isAirlockError } from '@airlock/contract'
import { Airlock } from '@airlock/sdk'
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linesOf } from '../support/lines.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { finalLeftovers } from '../support/server.ts'

let server: BorrowedServer
let airlock: Airlock
let admin: Airlock

beforeAll(async () => {
  server = await borrowServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
})

afterAll(async () => {
  await server?.giveBack()
})

/** The others go with it. */
function killGuest(sandbox: string): void {
  const isGuest = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('guest.cjs')
  const guest = server.processesOf(sandbox).find(isGuest)
  if (guest !== undefined) process.kill(guest, 'SIGKILL')
}

function codeOf(error: unknown): unknown {
  return isAirlockError(error) ? error.code : error
}

describe('the walk', () => {
  it('creates, runs, reads a file back and ends, and the evidence of all that verifies', async () => {
    const sandbox = await airlock.sandboxes.create({ name: 'walk', labels: { team: 'red' } })
    expect(sandbox.data).toMatchObject({
      state: 'active',
      tenant: 'default',
      agent: 'default',
      name: 'walk',
      labels: { team: 'red' },
    })
    expect(sandbox.data.isolation).toMatchObject({
      backend: 'oci',
      network: 'none',
      seccomp: 'allowlist',
      tier: 'standard',
    })

    const result = await sandbox.run({ shell: 'echo out; echo err >&2; echo kept > /workspace/kept; exit 7' })
    expect(result).toMatchObject({
      exitCode: 7,
      signal: null,
      stdout: 'out\n',
      stderr: 'err\n',
      timedOut: false,
      truncated: false,
    })
    expect(await sandbox.files.readText('/workspace/kept')).toBe('kept\n')

    await sandbox.terminate()
    expect(sandbox.data).toMatchObject({ state: 'stopped', endReason: 'terminated' })
    expect((await sandbox.terminate()).data).toMatchObject({ state: 'stopped', endReason: 'terminated' })
    await expect(sandbox.run(['true'])).rejects.toMatchObject({ code: 'sandbox_ended' })

    const told = async () =>
      (await admin.audit.events({ sandbox: sandbox.id })).items.map((record) => `${record.point} ${record.status}`)
    for (const expected of [
      'sandbox.create requested',
      'isolation.start done',
      'sandbox.create done',
      'command.run requested',
      'command.run done',
      'file.read requested',
      'sandbox.terminate requested',
      'isolation.stop done',
      'sandbox.terminate done',
    ])
      await expect.poll(told).toContain(expected)
    const { publicKey } = await admin.audit.head()
    expect(await verifyExport(linesOf(admin.audit.export()), { publicKey })).toMatchObject({
      ok: true,
      tenant: 'default',
    })
  })

  it('carries bytes unchanged in both directions', async () => {
    await using sandbox = await airlock.sandboxes.create({})
    const bytes = randomBytes(3_000_000)
    await sandbox.files.write('/workspace/blob', bytes)
    const sum = await sandbox.run(['sha256sum', '/workspace/blob'])
    expect(sum.stdout.split(' ')[0]).toBe(createHash('sha256').update(bytes).digest('hex'))
    expect(Buffer.compare(Buffer.from(await sandbox.files.read('/workspace/blob')), bytes)).toBe(0)
  })

  it('says why an upload is refused, however much of it is still to come', async () => {
    await using sandbox = await airlock.sandboxes.create({})
    const bytes = randomBytes(1_000_000)
    const refused = async () => sandbox.files.write('/usr/refused', bytes).then(() => 'written', codeOf)
    const told = []
    for (let round = 0; round < 20; round++) told.push(...(await Promise.all(Array.from({ length: 6 }, refused))))
    expect(new Set(told)).toEqual(new Set(['permission_denied']))
  })

  it('keeps names unique among the living of an agent, and gives them back', async () => {
    const first = await airlock.sandboxes.create({ name: 'only' })
    await expect(airlock.sandboxes.create({ name: 'only' })).rejects.toMatchObject({ code: 'name_taken' })
    expect((await airlock.sandboxes.getOrCreate('only', {})).id).toBe(first.id)
    await first.terminate()
    const second = await airlock.sandboxes.getOrCreate('only', {})
    expect(second.id).not.toBe(first.id)
    await second.terminate()
  })

  it('answers two creates of one name at once with one sandbox', async () => {
    const both = await Promise.allSettled([
      airlock.sandboxes.create({ name: 'race' }),
      airlock.sandboxes.create({ name: 'race' }),
    ])
    const won = both.filter((one) => one.status === 'fulfilled')
    const lost = both.filter((one) => one.status === 'rejected')
    expect([won.length, lost.length]).toEqual([1, 1])
    expect(lost[0]?.reason).toMatchObject({ code: 'name_taken' })
    await won[0]?.value.terminate()
  })

  it('streams output while the command runs and takes stdin', async () => {
    await using sandbox = await airlock.sandboxes.create({})
    const cat = await sandbox.start(['sh', '-c', 'read line; echo got $line; cat'], { stdin: 'open' })
    await cat.write('first\n')
    const seen: string[] = []
    for await (const event of cat) {
      if (event.event !== 'output') continue
      seen.push(event.text ?? '')
      if (seen.join('').includes('got first')) break
    }
    await cat.write('rest')
    await cat.end()
    expect(await cat.wait()).toMatchObject({ exitCode: 0 })
    expect((await sandbox.run(['true'])).exitCode).toBe(0)
  })

  it('gives the output of a background command again, also from an offset', async () => {
    await using sandbox = await airlock.sandboxes.create({})
    const command = await sandbox.start({ shell: 'printf abc; printf def' })
    await command.wait()
    const again = await command.output()
    expect(again.stdout).toBe('abcdef')
    const rest: string[] = []
    for await (const event of command.events({ from: 4 })) if (event.event === 'output') rest.push(event.text ?? '')
    expect(rest.join('')).toBe('ef')
  })

  it('tells the ways to end apart', async () => {
    await using sandbox = await airlock.sandboxes.create({})
    expect(await sandbox.run(['sleep', '60'], { timeoutMs: 300 })).toMatchObject({
      exitCode: null,
      signal: 'SIGKILL',
      timedOut: true,
    })
    const killed = await sandbox.start(['sleep', '60'])
    await killed.signal('SIGTERM')
    expect(await killed.wait()).toMatchObject({ exitCode: null, signal: 'SIGTERM', timedOut: false })
    await expect(sandbox.run(['no-such-program'])).rejects.toMatchObject({ code: 'executable_not_found' })
    await expect(sandbox.run(['true'], { cwd: '/nowhere' })).rejects.toMatchObject({ code: 'file_not_found' })
    await expect(killed.signal('SIGTERM')).rejects.toMatchObject({ code: 'command_ended' })
  })

  it('ends a sandbox by its TTL, extended by use, and says why', async () => {
    const sandbox = await airlock.sandboxes.create({ ttlMs: 6_000 })
    for (let use = 0; use < 3; use++) expect((await sandbox.run(['sleep', '2.1'])).exitCode).toBe(0)
    await expect
      .poll(async () => (await airlock.sandboxes.get(sandbox.id)).data, { timeout: 100_000 })
      .toMatchObject({ state: 'stopped', endReason: 'ttl' })
  })

  it('ends idle sandboxes and those at the end of their lifetime, whatever extends them', async () => {
    const idle = await airlock.sandboxes.create({ idleMs: 1_000 })
    const old = await airlock.sandboxes.create({ maxLifetimeMs: 10_000 })
    await old.extend(600_000)
    expect(old.data.expiresAt <= old.data.endsAt).toBe(true)
    const end = (id: string) => expect.poll(async () => (await airlock.sandboxes.get(id)).data, { timeout: 60_000 })
    await end(idle.id).toMatchObject({ state: 'stopped', endReason: 'idle' })
    await end(old.id).toMatchObject({ state: 'stopped', endReason: 'max_lifetime' })
  })

  it('ends a sandbox whose guest died as guest_lost', async () => {
    const sandbox = await airlock.sandboxes.create({})
    const running = await sandbox.start(['sleep', '600'])
    killGuest(sandbox.id)
    await expect
      .poll(async () => (await airlock.sandboxes.get(sandbox.id)).data, { timeout: 100_000 })
      .toMatchObject({ state: 'error', endReason: 'guest_lost' })
    expect((await running.get()).state).toBe('lost')
  })

  it('leaves nothing on the host once all have ended', async () => {
    for (const row of (await airlock.sandboxes.list({})).items) await (await airlock.sandboxes.get(row.id)).terminate()
    expect(await finalLeftovers(server.home)).toEqual([])
  })
})

describe('keys', () => {
  it('nothing works without one, and a wrong letter is no key', async () => {
    const wrong = server.developerKey.slice(0, -1) + (server.developerKey.endsWith('a') ? 'b' : 'a')
    for (const apiKey of ['', 'nonsense', wrong]) {
      const stranger = new Airlock({ url: server.url, apiKey })
      await expect(stranger.sandboxes.list({})).rejects.toMatchObject({ code: 'unauthenticated' })
    }
  })

  it('the developer key may not read evidence, the admin key may', async () => {
    await expect(airlock.audit.events({})).rejects.toMatchObject({ code: 'forbidden' })
    expect((await admin.audit.events({ limit: 1 })).items.length).toBe(1)
  })
})
