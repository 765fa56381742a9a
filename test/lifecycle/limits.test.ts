import type { Limits } from '@airlock/contract'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FORKS } from '../support/forks.ts'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

const MIB = 1024 * 1024
const SYS_RESOURCE = 24n

let server: TestServer
let airlock: Airlock
let admin: Airlock

beforeAll(async () => {
  server = await startServer()
  connect()
  await switchShippedRulesOff(server)
})
afterAll(async () => {
  await server?.stop()
})

function connect(): void {
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
}

/** How many processes there may be, found by making them. */
async function processesIn(sandbox: Sandbox): Promise<number> {
  const { stdout } = await sandbox.run(['python3', '-c', FORKS])
  return Number(stdout)
}

async function canHold(sandbox: Sandbox, mib: number): Promise<boolean> {
  const { stdout } = await sandbox.run(['python3', '-c', `block = bytearray(${mib} * 1024 * 1024)\nprint('held')`])
  return stdout === 'held\n'
}

const held = async () => (await airlock.budgets.ofAgent('default')).reserved

async function limitsOf(sandbox: Sandbox): Promise<Limits> {
  return (await sandbox.refresh()).data.limits
}

describe('the limits of a living sandbox', () => {
  it('rise and fall, and code inside feels it; the sandbox, its budget and the evidence say so', async () => {
    await using sandbox = await airlock.sandboxes.create({ limits: { memoryBytes: 96 * MIB, pids: 20, cpus: 1 } })
    const before = sandbox.data.limits
    expect([await processesIn(sandbox), await canHold(sandbox, 160)]).toEqual([20, false])
    await sandbox.setLimits({ memoryBytes: 320 * MIB, pids: 50, cpus: 2, cpuSeconds: 3600 })
    const after = { ...before, memoryBytes: 320 * MIB, pids: 50, cpus: 2, cpuSeconds: 3600 }
    expect([sandbox.data.limits, await limitsOf(sandbox)]).toEqual([after, after])
    expect([await processesIn(sandbox), await canHold(sandbox, 160)]).toEqual([50, true])
    expect(await held()).toEqual({ sandboxes: 1, memoryBytes: 320 * MIB, diskBytes: before.diskBytes, cpus: 2 })
    await sandbox.setLimits({ memoryBytes: 96 * MIB, pids: 30, cpus: 0.5, cpuSeconds: null })
    expect([await processesIn(sandbox), await canHold(sandbox, 160)]).toEqual([30, false])
    expect(await held()).toEqual({ sandboxes: 1, memoryBytes: 96 * MIB, diskBytes: before.diskBytes, cpus: 0.5 })
    await expect
      .poll(async () =>
        (await admin.audit.events({ sandbox: sandbox.id, point: 'sandbox.limit' })).items.map(({ status, payload }) => [
          status,
          payload['asked'],
          payload['limits'],
        ]),
      )
      .toEqual([
        ['done', { memoryBytes: 96 * MIB, pids: 30, cpus: 0.5, cpuSeconds: null }, { ...before, pids: 30, cpus: 0.5 }],
        [
          'requested',
          { memoryBytes: 96 * MIB, pids: 30, cpus: 0.5, cpuSeconds: null },
          { ...before, pids: 30, cpus: 0.5 },
        ],
        ['done', { memoryBytes: 320 * MIB, pids: 50, cpus: 2, cpuSeconds: 3600 }, after],
        ['requested', { memoryBytes: 320 * MIB, pids: 50, cpus: 2, cpuSeconds: 3600 }, after],
      ])
  })

  it('are not lowered below the memory that is used, and then nothing has changed', async () => {
    await using sandbox = await airlock.sandboxes.create({ limits: { memoryBytes: 320 * MIB, pids: 20 } })
    const hold = 'block = bytearray(160 * 1024 * 1024)\nprint("held", flush=True)\nimport time\ntime.sleep(600)'
    const hog = await sandbox.start(['python3', '-c', hold])
    for await (const event of hog) if (event.event === 'output') break
    const before = sandbox.data.limits
    await expect(sandbox.setLimits({ pids: 30, cpus: 0.5, memoryBytes: 96 * MIB })).rejects.toMatchObject({
      code: 'limit_in_use',
    })
    expect([await limitsOf(sandbox), await held()]).toEqual([
      before,
      { sandboxes: 1, memoryBytes: 320 * MIB, diskBytes: before.diskBytes, cpus: before.cpus },
    ])
    expect(await processesIn(sandbox)).toBe(19)
    expect((await sandbox.refresh()).data.state).toBe('active')
  })

  it('change while it is paused, and hold when it goes on', async () => {
    await using sandbox = await airlock.sandboxes.create({ limits: { pids: 20 } })
    await sandbox.pause()
    await sandbox.setLimits({ pids: 40 })
    expect(sandbox.data).toMatchObject({ state: 'paused', limits: { pids: 40 } })
    await sandbox.resume()
    expect(await processesIn(sandbox)).toBe(40)
  })

  it('that the disk has grow only where the kernel can, and inodes never', async () => {
    await using sandbox = await airlock.sandboxes.create({ limits: { diskBytes: 32 * MIB, inodes: 2048 } })
    const before = sandbox.data.limits
    await expect(sandbox.setLimits({ inodes: 4096 })).rejects.toMatchObject({ code: 'limit_fixed' })
    await expect(sandbox.setLimits({ diskBytes: 16 * MIB, pids: 99 })).rejects.toMatchObject({ code: 'limit_fixed' })
    expect(await limitsOf(sandbox)).toEqual(before)
    const grown = sandbox.setLimits({ diskBytes: 128 * MIB })
    const fill = () => sandbox.run({ shell: 'dd if=/dev/zero of=full bs=1M count=64 status=none' })
    if (canResize()) {
      await grown
      expect(sandbox.data.limits).toMatchObject({ diskBytes: 128 * MIB })
      expect(await fill()).toMatchObject({ exitCode: 0 })
    } else {
      await expect(grown).rejects.toMatchObject({ code: 'limit_fixed' })
      expect([await limitsOf(sandbox), (await fill()).exitCode]).toEqual([before, 1])
    }
  })

  it('cannot be more than the agent and the node have, and then nothing has changed', async () => {
    await using sandbox = await airlock.sandboxes.create({})
    const before = sandbox.data.limits
    await admin.budgets.setAgent('default', { memoryBytes: 700 * MIB, cpus: 1.5 })
    for (const asked of [{ memoryBytes: 701 * MIB }, { cpus: 1.6, pids: 99 }])
      await expect(sandbox.setLimits(asked)).rejects.toMatchObject({ code: 'budget_exhausted', status: 402 })
    await sandbox.setLimits({ memoryBytes: 700 * MIB })
    await expect(airlock.sandboxes.create({})).rejects.toMatchObject({ code: 'budget_exhausted' })
    await admin.budgets.setAgent('default', { memoryBytes: 400 * MIB, cpus: null })
    // Less than the agent holds, and it may still give back.
    await sandbox.setLimits({ memoryBytes: 600 * MIB })
    await admin.budgets.setAgent('default', { memoryBytes: null })
    await expect(sandbox.setLimits({ memoryBytes: 90 * 1024 * MIB, pids: 99 })).rejects.toMatchObject({
      code: 'capacity_exhausted',
    })
    expect(await limitsOf(sandbox)).toEqual({ ...before, memoryBytes: 600 * MIB })
    expect(await held()).toEqual({
      sandboxes: 1,
      memoryBytes: 600 * MIB,
      diskBytes: before.diskBytes,
      cpus: before.cpus,
    })
    await expect(sandbox.setLimits({})).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('are bounded by what bounds a creation', async () => {
    await using sandbox = await airlock.sandboxes.create({ limits: { pids: 20 } })
    const rule = {
      id: 'few',
      risk: 'low',
      kind: 'quota',
      effect: 'deny',
      reason: 'few processes',
      match: { over: { pids: 30 } },
    } as const
    await admin.policies.put({ name: 'quotas', rules: [rule] })
    try {
      await expect(sandbox.setLimits({ pids: 40 })).rejects.toMatchObject({ code: 'policy_denied' })
      await expect(airlock.sandboxes.create({ limits: { pids: 40 } })).rejects.toMatchObject({ code: 'policy_denied' })
      expect(await processesIn(sandbox)).toBe(20)
      await sandbox.setLimits({ pids: 30 })
      await expect
        .poll(async () =>
          (await admin.audit.events({ sandbox: sandbox.id, point: 'sandbox.limit' })).items.map(({ status }) => status),
        )
        .toEqual(['done', 'requested', 'denied'])
    } finally {
      await admin.policies.remove('quotas')
    }
  })

  it('stay as they were changed when any process of the server dies, and when all of it restarts', async () => {
    const sandbox = await airlock.sandboxes.create({ limits: { pids: 20 } })
    await sandbox.setLimits({ pids: 40, memoryBytes: 200 * MIB, openFiles: 200 })
    const { limits } = sandbox.data
    for (const name of ['data-plane', 'control-plane'] as const) {
      const pid = pidOf(server.home, name)
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
      await usable(sandbox, pid, name)
      expect([await limitsOf(sandbox), await processesIn(sandbox)]).toEqual([limits, 40])
    }
    await server.stop('SIGTERM')
    server = await startServer({ home: server.home })
    connect()
    const again = await airlock.sandboxes.get(sandbox.id)
    expect([again.data.limits, await processesIn(again)]).toEqual([limits, 40])
    expect((await again.run({ shell: 'ulimit -n' })).stdout).toBe('200\n')
    await again.setLimits({ pids: 30 })
    expect(await processesIn(again)).toBe(30)
    await again.terminate()
  })
})

describe('what each process is held to', () => {
  it('is how many files it has open, also when that changes', async () => {
    await using sandbox = await airlock.sandboxes.create({ limits: { openFiles: 128 } })
    const both = async () => (await sandbox.run({ shell: 'ulimit -Sn; ulimit -Hn; ulimit -n 5000 || true' })).stdout
    expect(await both()).toBe('128\n128\n')
    const opened = async () =>
      (
        await sandbox.run([
          'python3',
          '-c',
          'files = []\ntry:\n  while True: files.append(open("/dev/null"))\nexcept OSError as e: print(e.errno, len(files))',
        ])
      ).stdout
    expect(await opened()).toBe('24 125\n')
    await sandbox.setLimits({ openFiles: 300 })
    expect(await both()).toBe('300\n300\n')
    expect(await opened()).toBe('24 297\n')
    const session = await airlock.sessions.create({ sandbox: sandbox.id, runtime: 'python' })
    const step = await session.run('import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))')
    expect(step.stdout).toBe('(300, 300)\n')
  })

  it('is processor time where a command says so: SIGXCPU first, and SIGKILL for who does not listen', async () => {
    await using sandbox = await airlock.sandboxes.create({})
    const spin = { shell: 'while :; do :; done' }
    expect(await sandbox.run(spin, { cpuTimeMs: 300 })).toMatchObject({ signal: 'SIGXCPU', exitCode: null, stderr: '' })
    const deaf = 'import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass'
    expect(await sandbox.run(['python3', '-c', deaf], { cpuTimeMs: 1000 })).toMatchObject({ signal: 'SIGKILL' })
    expect(await sandbox.run({ shell: 'ulimit -t' })).toMatchObject({ stdout: 'unlimited\n' })
    expect(await sandbox.run(['sleep', '2'], { cpuTimeMs: 1000 })).toMatchObject({ exitCode: 0 })
  })
})

describe('in the strict tier', requires('runsc'), () => {
  it('limits change, and each process is held to its own', async () => {
    await using sandbox = await airlock.sandboxes.create({ tier: 'strict', limits: { openFiles: 128 } })
    const before = sandbox.data.limits
    await sandbox.setLimits({ memoryBytes: 1024 * MIB, cpus: 0.5, pids: 100, openFiles: 300 })
    expect(await limitsOf(sandbox)).toEqual({
      ...before,
      memoryBytes: 1024 * MIB,
      cpus: 0.5,
      pids: 100,
      openFiles: 300,
    })
    expect((await sandbox.run({ shell: 'ulimit -Sn; ulimit -Hn' })).stdout).toBe('300\n300\n')
    expect(await canHold(sandbox, 900)).toBe(true)
    const spun = await sandbox.run({ shell: 'while :; do :; done' }, { cpuTimeMs: 300 })
    expect(spun).toMatchObject({ exitCode: null, timedOut: false })
    expect(['SIGXCPU', 'SIGKILL']).toContain(spun.signal)
  })
})

/** The process is another one, and the server answers. */
async function usable(sandbox: Sandbox, died: number | undefined, name: 'data-plane' | 'control-plane'): Promise<void> {
  await waitFor(
    async () => {
      if (pidOf(server.home, name) === died) return undefined
      return sandbox.run(['true']).catch(() => undefined)
    },
    { signal: deadline(60_000), everyMs: 200 },
  )
}

/** Whether this machine lets its root make a mounted file system larger. */
function canResize(): boolean {
  const [, caps = '0'] = /^CapEff:\s*([0-9a-f]+)$/mu.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return ((BigInt(`0x${caps}`) >> SYS_RESOURCE) & 1n) === 1n
}
