import { Airlock, type CreateOptions, type MetricEvent, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { FORK_BOMB } from '../support/forks.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'
import { isSigned, Receiver } from '../support/webhook-receiver.ts'

const MIB = 1024 * 1024
const WAIT_MS = 100_000
const TEST_MS = 240_000
const EVERY_SECOND = { AIRLOCK_MONITOR_EVERY_S: '1', AIRLOCK_MONITOR_SUSTAINED: '2', AIRLOCK_WEBHOOK_PRIVATE: 'true' }

/** A program that is killed for want of memory, again and again. */
const HOG = 'while :; do tail /dev/zero; done'
const BURN = 'while :; do :; done'

/** A record of an alert: its status, and what it says. */
interface Said {
  readonly status?: unknown
  readonly action?: unknown
  readonly resource?: unknown
  readonly level?: unknown
  readonly was?: unknown
  readonly cleared?: unknown
}

/** One server with its callers. */
class Watched {
  readonly server: TestServer
  readonly developer: Airlock
  readonly admin: Airlock

  constructor(server: TestServer) {
    this.server = server
    this.developer = new Airlock({ url: server.url, apiKey: server.developerKey })
    this.admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  }

  static async start(env: Readonly<Record<string, string>> = {}, failpoint?: string): Promise<Watched> {
    const server = await startServer({
      env: { ...EVERY_SECOND, ...env },
      ...(failpoint === undefined ? {} : { failpoint }),
    })
    await switchShippedRulesOff(server)
    return new Watched(server)
  }

  async sandbox(limits: NonNullable<CreateOptions['limits']>): Promise<Sandbox> {
    return this.developer.sandboxes.create({ limits, ttlMs: 600_000 })
  }

  /** What evidence has of alerts, oldest first, as soon as the last of them is what is waited for. */
  async recorded(sandbox: Sandbox, isLast: (said: Said) => boolean): Promise<readonly Said[]> {
    const look = async () => {
      const { items } = await this.admin.audit.events({ sandbox: sandbox.id, point: 'monitor.alert' })
      const said = items.map(({ status, payload }) => ({ status, ...payload })).toReversed()
      return said.some(isLast) ? said : undefined
    }
    return waitFor(look, patience())
  }

  /** What evidence has of its end by the monitor. */
  async kill(sandbox: Sandbox): Promise<readonly Said[]> {
    const said = await this.recorded(sandbox, ({ status, action }) => action === 'kill' && status === 'done')
    return said.filter(({ action }) => action === 'kill')
  }
}

function patience() {
  return { signal: deadline(WAIT_MS), everyMs: 100 }
}

/** Reads the metrics of a sandbox until an event is what is waited for. What comes between two calls is read by the second. */
function follow(sandbox: Sandbox): (isIt: (event: MetricEvent) => boolean) => Promise<void> {
  const events = sandbox.followMetrics({ signal: deadline(WAIT_MS) })
  return async (isIt) => {
    for (let read = await events.next(); !read.done; read = await events.next()) if (isIt(read.value)) return
    throw new TypeError('it ended before')
  }
}

const isCleared = (resource: string) => (event: MetricEvent) => event.event === 'cleared' && event.resource === resource
const isAt = (resource: string, level: string) => (event: MetricEvent) =>
  event.event === 'alert' && event.alert.resource === resource && event.alert.level === level

/** Why it ended, once it has. */
async function ended(sandbox: Sandbox): Promise<string | null> {
  const look = async () => ((await sandbox.refresh()).data.state === 'stopped' ? sandbox.data.endReason : undefined)
  return waitFor(look, patience())
}

let watched: Watched

beforeAll(async () => {
  watched = await Watched.start()
}, TEST_MS)
afterAll(async () => {
  await watched?.server.stop()
})

describe('a sandbox that is beyond a threshold', () => {
  it('raises an alert, escalates it and clears it: for followers, in evidence, among events and at webhooks', async () => {
    const { admin } = watched
    const receiver = new Receiver()
    const { secret } = await admin.webhooks.create({ url: await receiver.listen(), events: ['alert'] })
    await using sandbox = await watched.sandbox({ cpus: 0.1 })
    const until = follow(sandbox)
    const burning = await sandbox.start({ shell: BURN })
    await until(isAt('cpu', 'critical'))
    // A busy host takes the processor from the loop at times: then the alert eases, and is raised again.
    await expect
      .poll(async () => (await sandbox.metrics()).alerts, { timeout: 60_000 })
      .toMatchObject([{ sandbox: sandbox.id, agent: 'default', resource: 'cpu', level: 'critical' }])
    expect((await sandbox.metrics()).raised.critical).toBeGreaterThanOrEqual(1)
    await burning.signal('SIGKILL')
    await until(isCleared('cpu'))
    expect((await sandbox.metrics()).alerts).toEqual([])

    const records = await watched.recorded(sandbox, ({ cleared }) => cleared === true)
    expect(records.at(0)).toMatchObject({ status: 'done', resource: 'cpu', was: null, cleared: false })
    expect(records.at(-1)).toMatchObject({ status: 'done', resource: 'cpu', level: null, cleared: true })
    const levels = records.map(({ was, level }) => [was, level])
    expect(levels.slice(1).map(([was]) => was)).toEqual(levels.slice(0, -1).map(([, level]) => level))
    for await (const event of admin.events({ sandbox: sandbox.id, point: 'monitor.*', after: 0 })) {
      expect(event).toMatchObject({ point: 'monitor.alert', payload: { resource: 'cpu', was: null } })
      break
    }

    const told = await receiver.has(records.length)
    expect(told.every((delivery) => isSigned(delivery, secret))).toBe(true)
    const bodies = told.map(({ body }) => JSON.parse(body) as { event: string; data: Record<string, unknown> })
    expect(bodies.map(({ event, data }) => [event, data['sandbox'], data['was'], data['level']])).toEqual(
      records.map(({ was, level }) => ['alert', sandbox.id, was, level]),
    )
    await receiver.close()
  })

  it('says which resource: memory, disk or inodes', async () => {
    await using sandbox = await watched.sandbox({ memoryBytes: 64 * MIB, diskBytes: 128 * MIB, inodes: 1024 })
    const until = follow(sandbox)
    const holding = await sandbox.start({ shell: 'head -c 56000000 /dev/zero | tail -c 56000000 | sleep 600' })
    await until(isAt('memory', 'warning'))
    await holding.signal('SIGKILL')
    await until(isCleared('memory'))
    await sandbox.run({ shell: 'head -c 200000000 /dev/zero > /workspace/large' })
    await until(isAt('disk', 'critical'))
    // That the kernel keeps what was written in memory as long as there is room is no want of it.
    const { now, alerts } = await sandbox.metrics()
    expect(now?.memoryBytes).toBeGreaterThan(52 * MIB)
    expect(alerts.map(({ resource }) => resource)).toEqual(['disk'])
    await sandbox.run({ shell: 'rm /workspace/large' })
    await until(isCleared('disk'))
    await sandbox.run({ shell: 'cd /workspace; i=0; while [ $i -lt 2000 ] && : > f$i; do i=$((i+1)); done' })
    await until(isAt('inodes', 'critical'))
    expect((await sandbox.refresh()).data.state).toBe('active')
  })
})

it('an alert outlives a kill -9 of the control plane, and is raised once', async () => {
  await using sandbox = await watched.sandbox({ diskBytes: 16 * MIB })
  await sandbox.run({ shell: 'head -c 20000000 /dev/zero > /workspace/large' })
  await follow(sandbox)(isAt('disk', 'critical'))
  const { since } = (await sandbox.metrics()).alerts[0] ?? {}
  const victim = pidOf(watched.server.home, 'control-plane')
  if (victim !== undefined) process.kill(victim, 'SIGKILL')
  await waitFor(() => {
    const next = pidOf(watched.server.home, 'control-plane')
    return next === victim ? undefined : next
  }, patience())
  // What is told first after the restart is what was known before it.
  const isBack = async () => (await sandbox.metrics().catch(() => undefined))?.alerts[0]
  expect(await waitFor(isBack, patience())).toMatchObject({ resource: 'disk', level: 'critical', since })
  let samples = 0
  await follow(sandbox)(({ event }) => event === 'sample' && ++samples === 5)
  await sandbox.run({ shell: 'rm /workspace/large' })
  await follow(sandbox)(isCleared('disk'))
  const records = await watched.recorded(sandbox, ({ cleared }) => cleared === true)
  const raised = records.filter(({ resource, was }) => resource === 'disk' && was === null)
  expect(raised).toHaveLength(1)
})

describe('a sandbox is ended by the monitor', () => {
  it('for a fork bomb, with what was seen in evidence, and leaves others alone', async () => {
    await using other = await watched.sandbox({})
    const sandbox = await watched.sandbox({ pids: 64 })
    await sandbox.start(FORK_BOMB)
    expect(await ended(sandbox)).toBe('pids_exhausted')
    const kills = await watched.kill(sandbox)
    expect(kills).toMatchObject([
      { status: 'requested', resource: 'pids', reason: 'pids_exhausted', seen: { limit: 64 } },
      { status: 'done', resource: 'pids', reason: 'pids_exhausted', endReason: 'pids_exhausted' },
    ])
    expect((await other.run(['echo', 'lives'])).stdout).toBe('lives\n')
  })

  it('for running out of memory three times in a minute, which whoever waits for the command is told', async () => {
    const sandbox = await watched.sandbox({ memoryBytes: 64 * MIB })
    const waited = sandbox.run({ shell: HOG })
    expect(await ended(sandbox)).toBe('out_of_memory')
    expect(await waited).toMatchObject({ state: 'lost', cause: 'killed_by_policy' })
  })

  it('for its processor time, at its cap', async () => {
    const sandbox = await watched.sandbox({ cpuSeconds: 1 })
    await sandbox.start({ shell: BURN })
    expect(await ended(sandbox)).toBe('cpu_exhausted')
  })
})

it(
  'a sandbox whose data plane dies while it is ended is ended again, and it shows',
  async () => {
    const breaking = await Watched.start({}, 'terminate.frozen:data-plane')
    try {
      const sandbox = await breaking.sandbox({ cpuSeconds: 1 })
      await sandbox.start({ shell: BURN })
      expect(await ended(sandbox)).toBe('cpu_exhausted')
      expect(await breaking.server.diedAtFailpoint()).toBe(true)
      const kills = await breaking.kill(sandbox)
      expect(kills.at(0)).toMatchObject({ status: 'requested', reason: 'cpu_exhausted' })
      expect(kills.at(-1)).toMatchObject({ status: 'done', failures: expect.any(Number), endReason: 'cpu_exhausted' })
    } finally {
      await breaking.server.stop()
    }
  },
  TEST_MS,
)

it(
  'nothing ends by the monitor where that is turned off, though it is beyond every limit',
  async () => {
    const lenient = await Watched.start({ AIRLOCK_MONITOR_KILL: 'none' })
    try {
      const full = await lenient.sandbox({ pids: 32 })
      await full.start({ shell: 'i=1; while [ $i -lt 32 ]; do i=$((i+1)); sleep 600 & done; wait' })
      const hungry = await lenient.sandbox({ memoryBytes: 64 * MIB })
      await hungry.start({ shell: HOG })
      const busy = await lenient.sandbox({ cpuSeconds: 1 })
      await busy.start({ shell: BURN })
      let fullSamples = 0
      await follow(full)(
        (event) => event.event === 'sample' && event.sample.ofLimit.pids === 100 && ++fullSamples === 5,
      )
      await follow(hungry)((event) => event.event === 'sample' && (event.sample.oomKills ?? 0) >= 6)
      await follow(busy)((event) => event.event === 'sample' && (event.sample.cpuMs ?? 0) >= 3000)
      for (const sandbox of [full, hungry, busy]) expect((await sandbox.refresh()).data.state).toBe('active')
      expect(
        (await lenient.recorded(full, ({ resource }) => resource === 'pids')).map(({ resource, level, action }) => [
          resource,
          level,
          action,
        ]),
      ).toEqual([['pids', 'critical', undefined]])
    } finally {
      await lenient.server.stop()
    }
  },
  TEST_MS,
)
