import { Airlock, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
let airlock: Airlock
let admin: Airlock

beforeAll(async () => {
  server = await startServer()
  connect()
})
afterAll(async () => {
  await server?.stop()
})

function connect(): void {
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
}

const PAUSED = { code: 'sandbox_paused' }

/** Counts in a file that is always whole. */
const COUNTER = 'i=0; while :; do i=$((i+1)); echo $i > next; mv next count; done'

async function counting(sandbox: Sandbox): Promise<void> {
  await sandbox.start({ shell: COUNTER })
  await waitFor(async () => ((await counted(sandbox)) > 0 ? true : undefined), soon())
}

async function counted(sandbox: Sandbox): Promise<number> {
  const { stdout } = await sandbox.run({ shell: 'cat /workspace/count 2>/dev/null || true' })
  return Number(stdout.trim())
}

function soon(): { readonly signal: AbortSignal; readonly everyMs: number } {
  return { signal: deadline(100_000), everyMs: 50 }
}

/** What all processes of a sandbox have used, as the host's kernel says. */
function ticks(sandbox: string): number {
  return server.processesOf(sandbox).reduce((sum, pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return sum + Number(fields[11]) + Number(fields[12])
  }, 0)
}

const points = async (sandbox: string, point: 'sandbox.pause' | 'sandbox.resume') =>
  (await admin.audit.events({ sandbox, point })).items.map(({ status, payload }) => [
    status,
    payload['by'] ?? payload['why'],
  ])

describe('a sandbox that is paused', () => {
  it('stands still, answers sandbox_paused, shows its state, and goes on where it was', async () => {
    await using sandbox = await airlock.sandboxes.create({ ttlMs: 60_000 })
    await counting(sandbox)
    await sandbox.pause()
    expect(sandbox.data).toMatchObject({ state: 'paused', pausedBy: 'request', pausedAt: expect.any(String) })
    const processes = server.processesOf(sandbox.id)
    const before = ticks(sandbox.id)
    const spin = await airlock.sandboxes.create()
    await spin.run({ shell: 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done' })
    await spin.terminate()
    expect([server.processesOf(sandbox.id), ticks(sandbox.id)]).toEqual([processes, before])

    for (const use of [
      () => sandbox.run(['true']),
      () => sandbox.start(['true']),
      () => sandbox.files.read('/workspace/count'),
      () => sandbox.files.write('/workspace/other', 'x'),
      () => sandbox.files.list('/workspace'),
      () => sandbox.extend(),
      () => airlock.sessions.create({ sandbox: sandbox.id, runtime: 'bash' }),
    ])
      await expect(use()).rejects.toMatchObject(PAUSED)
    expect((await sandbox.refresh()).data.state).toBe('paused')
    expect((await airlock.sandboxes.list({ state: 'paused' })).items.map(({ id }) => id)).toEqual([sandbox.id])
    expect((await sandbox.commands({ limit: 200 })).items.map(({ state }) => state)).toContain('running')

    await sandbox.resume()
    expect(sandbox.data).toMatchObject({ state: 'active', pausedAt: null, pausedBy: null })
    const first = await counted(sandbox)
    await waitFor(async () => ((await counted(sandbox)) > first ? true : undefined), soon())
  })

  it('may be paused and resumed again and again, and evidence has each time once', async () => {
    await using sandbox = await airlock.sandboxes.create()
    await sandbox.pause()
    await sandbox.pause()
    await sandbox.resume()
    await sandbox.resume()
    expect((await sandbox.run(['echo', 'on'])).stdout).toBe('on\n')
    const soonRecorded = async (point: 'sandbox.pause' | 'sandbox.resume') => {
      await expect.poll(async () => (await points(sandbox.id, point)).length, { timeout: 100_000 }).toBe(2)
      return points(sandbox.id, point)
    }
    expect(await soonRecorded('sandbox.pause')).toEqual([
      ['done', 'request'],
      ['requested', 'request'],
    ])
    expect(await soonRecorded('sandbox.resume')).toEqual([
      ['done', 'request'],
      ['requested', 'request'],
    ])
  })

  it('keeps the time that it had left, and holds its part of the budget', async () => {
    await using sandbox = await airlock.sandboxes.create({ ttlMs: 8_000, maxPausedMs: 60_000 })
    await sandbox.run(['true'])
    await sandbox.pause()
    const left = Date.parse(sandbox.data.expiresAt) - Date.parse(sandbox.data.pausedAt ?? '')
    const held = (await airlock.budgets.ofAgent('default')).reserved.sandboxes
    // Longer than it had left.
    await new Promise((resolve) => setTimeout(resolve, left + 500))
    expect((await sandbox.refresh()).data.state).toBe('paused')
    expect((await airlock.budgets.ofAgent('default')).reserved.sandboxes).toBe(held)
    await sandbox.resume()
    expect(Date.parse(sandbox.data.expiresAt) - Date.parse(sandbox.data.lastActiveAt)).toBe(left)
  })

  it('does not count the pause as time of a command or of a step', async () => {
    await using sandbox = await airlock.sandboxes.create()
    const session = await airlock.sessions.create({ sandbox: sandbox.id, runtime: 'python' })
    const command = await sandbox.start({ shell: 'sleep 1.5; echo whole' }, { timeoutMs: 8_000 })
    const code = 'import time\nopen("/workspace/began", "w").close()\ntime.sleep(1.5)\nprint("whole")'
    const step = session.run(code, { timeoutMs: 8_000 })
    // A step that is listed may not have begun, and a pause would refuse it.
    const hasBegun = async () => (await sandbox.run(['test', '-e', '/workspace/began'])).exitCode === 0 || undefined
    await waitFor(hasBegun, soon())
    await sandbox.pause()
    await new Promise((resolve) => setTimeout(resolve, 8_500))
    await sandbox.resume()
    expect(await command.wait()).toMatchObject({ exitCode: 0, timedOut: false, stdout: 'whole\n' })
    expect(await step).toMatchObject({ status: 'completed', stdout: 'whole\n' })
  })

  it('ends when it is paused for too long', async () => {
    const sandbox = await airlock.sandboxes.create({ maxPausedMs: 1000 })
    await sandbox.pause()
    await expect
      .poll(async () => (await sandbox.refresh()).data, { timeout: 100_000 })
      .toMatchObject({ state: 'stopped', endReason: 'paused_too_long' })
    expect(server.processesOf(sandbox.id)).toEqual([])
  })

  it('can be terminated, and nothing of it is left', async () => {
    const sandbox = await airlock.sandboxes.create()
    await counting(sandbox)
    await sandbox.pause()
    await sandbox.terminate()
    expect(sandbox.data).toMatchObject({ state: 'stopped', endReason: 'terminated' })
    expect(server.processesOf(sandbox.id)).toEqual([])
  })

  it('is gone when it is dead all the same', async () => {
    const sandbox = await airlock.sandboxes.create()
    await sandbox.pause()
    for (const pid of server.processesOf(sandbox.id)) process.kill(pid, 'SIGKILL')
    await sandbox.resume().catch(() => undefined)
    await expect
      .poll(async () => (await sandbox.refresh()).data, { timeout: 100_000 })
      .toMatchObject({ state: 'error', endReason: 'guest_lost' })
  })
})

describe('an idle sandbox', () => {
  it('is paused when that was asked for, and its next use resumes it', async () => {
    await using sandbox = await airlock.sandboxes.create({ name: 'sleeper', idleMs: 1000, onIdle: 'pause' })
    const session = await airlock.sessions.create({ sandbox: sandbox.id, runtime: 'python' })
    await session.run('x = 42')
    const paused = { state: 'paused', pausedBy: 'idle' }
    const asleep = async () =>
      expect.poll(async () => (await sandbox.refresh()).data, { timeout: 100_000 }).toMatchObject(paused)
    await asleep()
    expect(await session.run('print(x)')).toMatchObject({ stdout: '42\n' })
    await asleep()
    expect((await sandbox.run(['echo', 'up'])).stdout).toBe('up\n')
    await asleep()
    expect((await airlock.sandboxes.getOrCreate('sleeper')).data).toMatchObject({ id: sandbox.id, state: 'active' })
    await asleep()
    await sandbox.pause()
    expect(sandbox.data).toMatchObject({ state: 'paused', pausedBy: 'request' })
    await expect(sandbox.run(['true'])).rejects.toMatchObject(PAUSED)
  })
})

describe('a restart', () => {
  it('of the whole server leaves it paused, and it goes on after that', async () => {
    const sandbox = await airlock.sandboxes.create()
    const slow = await sandbox.start({ shell: 'sleep 2; echo whole' }, { timeoutMs: 15_000 })
    await sandbox.pause()
    const before = ticks(sandbox.id)
    await server.stop('SIGTERM')
    server = await startServer({ home: server.home })
    connect()
    const again = await airlock.sandboxes.get(sandbox.id)
    expect(again.data).toMatchObject({ state: 'paused', pausedBy: 'request' })
    expect(ticks(sandbox.id)).toBe(before)
    await expect(again.run(['true'])).rejects.toMatchObject(PAUSED)
    await new Promise((resolve) => setTimeout(resolve, 3000))
    await again.resume()
    expect((await again.run(['echo', 'on'])).stdout).toBe('on\n')
    expect(await again.command(slow.id).wait()).toMatchObject({ exitCode: 0, timedOut: false, stdout: 'whole\n' })
    await again.terminate()
  })
})
