import { Airlock, type MetricEvent, type SandboxMetrics } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

const MIB = 1024 * 1024
const EVERY_SECOND = { AIRLOCK_MONITOR_EVERY_S: '1' }

let server: TestServer
let airlock: Airlock
let admin: Airlock

beforeAll(async () => {
  server = await startServer({ env: EVERY_SECOND })
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

function soon(): { readonly signal: AbortSignal; readonly everyMs: number } {
  return { signal: deadline(60_000), everyMs: 200 }
}

async function metricsThat(sandbox: string, are: (metrics: SandboxMetrics) => boolean): Promise<SandboxMetrics> {
  return waitFor(async () => {
    const metrics = await airlock.metrics.sandbox(sandbox)
    return are(metrics) ? metrics : undefined
  }, soon())
}

const settled = async (sandbox: string): Promise<SandboxMetrics> =>
  metricsThat(sandbox, ({ now }) => now !== null && now.cpuPercent !== null && now.cpuPercent < 5)

/** The lines of a metric, by their labels. */
function prometheus(text: string, name: string): ReadonlyMap<string, number> {
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return new Map(
    lines.map((line) => {
      const [, labels = '', value] = /^\w+(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      return [labels, Number(value)]
    }),
  )
}

async function scrape(): Promise<string> {
  const response = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.adminKey}` } })
  return response.text()
}

describe('the metrics of a sandbox', () => {
  it('move with what code inside does: processors, memory, processes and disk', async () => {
    await using sandbox = await airlock.sandboxes.create({ name: 'busy' })
    const before = await settled(sandbox.id)
    const { now: idle } = before
    expect(before).toMatchObject({
      sandbox: sandbox.id,
      name: 'busy',
      agent: 'default',
      state: 'active',
      limits: sandbox.data.limits,
      alerts: [],
      raised: { warning: 0, critical: 0 },
    })

    await sandbox.start({ shell: 'while :; do :; done' })
    const burning = await metricsThat(sandbox.id, ({ now }) => (now?.cpuPercent ?? 0) > 10)
    expect(burning.now?.cpuMs).toBeGreaterThan(idle?.cpuMs ?? 0)
    await sandbox.start(['python3', '-c', `import time; x = bytearray(${100 * MIB}); time.sleep(600)`])
    await metricsThat(sandbox.id, ({ now }) => (now?.memoryBytes ?? 0) > (idle?.memoryBytes ?? 0) + 90 * MIB)
    await sandbox.start({ shell: 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 600 & done; wait' })
    await metricsThat(sandbox.id, ({ now }) => (now?.pids ?? 0) >= (idle?.pids ?? 0) + 10)
    await sandbox.run({ shell: 'head -c 20M /dev/urandom > /workspace/noise; sync' })
    await metricsThat(sandbox.id, ({ now }) => (now?.diskBytes ?? 0) >= (idle?.diskBytes ?? 0) + 20 * MIB)

    const { history } = await sandbox.metrics()
    expect(history.length).toBeGreaterThan(3)
    expect(history).toEqual(history.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at)))
    const [minute] = (await sandbox.metrics({ resolution: '15m' })).history.slice(-1)
    expect(minute?.memoryBytesMax).toBeGreaterThan(90 * MIB)
    const { total } = await airlock.metrics.all()
    expect(total.memoryBytes).toBeGreaterThan(90 * MIB)
  })

  it('are of what stands still too', async () => {
    await using sandbox = await airlock.sandboxes.create()
    await sandbox.start({ shell: 'while :; do :; done' })
    await metricsThat(sandbox.id, ({ now }) => (now?.cpuPercent ?? 0) > 10)
    await sandbox.pause()
    const paused = await metricsThat(sandbox.id, ({ state, now }) => state === 'paused' && now?.cpuPercent === 0)
    expect(paused.now?.pids).toBeGreaterThan(0)
  })

  it('are followed, sample by sample, until it ends, and its history stays', async () => {
    const sandbox = await airlock.sandboxes.create()
    const events: MetricEvent[] = []
    for await (const event of sandbox.followMetrics({ signal: deadline(60_000) })) {
      events.push(event)
      if (events.length === 3) await sandbox.terminate()
    }
    const samples = events.flatMap((event) => (event.event === 'sample' ? [event.sample.at] : []))
    expect(samples.length).toBeGreaterThanOrEqual(3)
    expect(samples).toEqual([...new Set(samples)].toSorted())
    expect(events.at(-1)).toEqual({ event: 'ended', sandbox: sandbox.id })
    expect(await Array.fromAsync(airlock.metrics.follow(sandbox.id))).toEqual([{ event: 'ended', sandbox: sandbox.id }])
    const { state, now, history } = await sandbox.metrics()
    expect([state, now, history.length >= 3]).toEqual(['stopped', null, true])
  })

  it('are of nobody else: another tenant, or an agent that a key is not bound to', async () => {
    await admin.tenants.create('elsewhere')
    for (const agent of ['watched', 'bystander']) await admin.agents.register(agent, { approve: true })
    await using sandbox = await airlock.sandboxes.create({ agent: 'watched' })
    await settled(sandbox.id)
    const other = await admin.keys.create({ name: 'other', role: 'admin', tenant: 'elsewhere' })
    const bound = await admin.keys.create({ name: 'bound', role: 'developer', agents: ['bystander'] })
    for (const { secret } of [other, bound]) {
      const stranger = new Airlock({ url: server.url, apiKey: secret })
      expect(await stranger.metrics.all()).toMatchObject({ total: { sandboxes: 0, memoryBytes: 0 }, sandboxes: [] })
      await expect(stranger.metrics.sandbox(sandbox.id)).rejects.toMatchObject({ code: 'sandbox_not_found' })
      await expect(Array.fromAsync(stranger.metrics.follow(sandbox.id))).rejects.toMatchObject({
        code: 'sandbox_not_found',
      })
      await expect(stranger.metrics.agent('watched')).rejects.toMatchObject({ code: 'agent_not_found' })
    }
  })
})

describe('the metrics of agents and tenants', () => {
  it('are those of their sandboxes together', async () => {
    await admin.agents.register('pair', { approve: true })
    await using one = await airlock.sandboxes.create({ agent: 'pair' })
    await using two = await airlock.sandboxes.create({ agent: 'pair' })
    await using _other = await airlock.sandboxes.create()
    for (const { id } of [one, two]) await settled(id)
    const hold = ['python3', '-c', `import time; x = bytearray(${50 * MIB}); time.sleep(600)`]
    for (const sandbox of [one, two]) await sandbox.start(hold)
    const pair = await waitFor(async () => {
      const metrics = await airlock.metrics.agent('pair')
      return metrics.total.memoryBytes > 100 * MIB ? metrics : undefined
    }, soon())
    expect(pair).toMatchObject({ agent: 'pair', total: { sandboxes: 2 }, raised: { warning: 0, critical: 0 } })
    expect(pair.sandboxes.map(({ sandbox }) => sandbox)).toEqual([two.id, one.id])
    expect(Math.max(...pair.history.map(({ memoryBytesMax }) => memoryBytesMax ?? 0))).toBeGreaterThan(100 * MIB)
    expect((await airlock.metrics.all({ agent: 'pair' })).total.sandboxes).toBe(2)
    expect((await airlock.metrics.all()).total.sandboxes).toBe(3)

    const text = await scrape()
    const whose = 'tenant="default",agent="pair"'
    expect(prometheus(text, 'airlock_agent_memory_bytes').get(whose)).toBeGreaterThan(100 * MIB)
    expect(prometheus(text, 'airlock_agent_sampled_sandboxes').get(whose)).toBe(2)
    expect(prometheus(text, 'airlock_tenant_sampled_sandboxes').get('tenant="default"')).toBe(3)
    expect(prometheus(text, 'airlock_monitor_round_duration_seconds_count').get('')).toBeGreaterThan(0)
  })
})

describe('Prometheus text', () => {
  it('is what the format allows', async () => {
    await using sandbox = await airlock.sandboxes.create()
    await settled(sandbox.id)
    const label = String.raw`[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"`
    const sample = new RegExp(String.raw`^[a-z_]+(?:\{${label}(?:,${label})*\})? -?\d+(?:\.\d+)?(?:e[+-]?\d+)?$`)
    const head = /^# (?:HELP [a-z_]+ \S.*|TYPE [a-z_]+ (?:counter|gauge|histogram))$/
    const lines = (await scrape()).split('\n')
    expect(lines.pop()).toBe('')
    expect(lines.filter((line) => !head.test(line) && !sample.test(line))).toEqual([])
    const names = lines.flatMap((line) => /^# TYPE ([a-z_]+)/.exec(line)?.[1] ?? [])
    expect(names).toEqual([...new Set(names)])
  })
})

describe('the history of a server that was stopped and started', () => {
  it('is there, of what lives and of what has ended', async () => {
    const ended = await airlock.sandboxes.create()
    const living = await airlock.sandboxes.create()
    for (const { id } of [ended, living]) await settled(id)
    await ended.terminate()
    const before = new Map(
      await Promise.all(
        [ended, living].map(async ({ id }) => [id, (await airlock.metrics.sandbox(id)).history] as const),
      ),
    )
    const { home } = server
    await server.stop('SIGTERM')
    server = await startServer({ env: EVERY_SECOND, home })
    connect()
    for (const [id, history] of before) {
      const after = await metricsThat(id, (metrics) => metrics.state === 'stopped' || metrics.now !== null)
      expect(after.history.slice(0, history.length)).toEqual(history)
    }
    await metricsThat(living.id, ({ history }) => history.length > (before.get(living.id)?.length ?? 0) + 2)
    const minutes = (await airlock.metrics.sandbox(living.id, { resolution: '1m' })).history
    expect(new Set(minutes.map(({ at }) => at)).size).toBe(minutes.length)
  })
})
