import type { AuditRecord } from '@airlock/contract'
import { type AgentSummary, Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { expect, it } from 'vitest'
import { exported } from '../support/exported.ts'
import { startServer } from '../support/server.ts'

const GB = 1024 ** 3

it('summary and stats say what a computation from the export says, and a stream ends with the server', async () => {
  const server = await startServer()
  try {
    const developer = new Airlock({ url: server.url, apiKey: server.developerKey })
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    const session = await developer.sessions.create({ runtime: 'bash' })
    for (const code of ['true', 'false', 'echo 1; sleep 0.1', 'sleep 0.3']) await session.run(code)
    await session.terminate()
    const sandbox = await developer.sandboxes.create()
    for (const argv of [['true'], ['false'], ['sleep', '0.2']]) await sandbox.run(argv)
    await sandbox.run(['no-such-program']).catch(() => undefined)
    await sandbox.terminate()
    await developer.sandboxes.create({ limits: { memoryBytes: 200 * GB } }).catch(() => undefined)
    const ended = async () => {
      const { items } = await admin.audit.events({ point: 'sandbox.terminate', status: 'done' })
      return items.length >= 2 ? true : undefined
    }
    await waitFor(ended, { signal: deadline(100_000), everyMs: 100 })
    const summary = await developer.agents.summary('default', { days: 2 })
    expectSame(
      summary,
      (await exported(admin)).records.filter(({ agent }) => agent === 'default'),
    )
    expect(summary.kinds.map(({ point }) => point)).toEqual(expect.arrayContaining(['step.run', 'command.run']))
    expect(summary).toMatchObject({ sandboxes: 2, complete: true })
    await expect(developer.agents.summary('nobody')).rejects.toMatchObject({ code: 'agent_not_found' })
    const stats = await admin.audit.stats()
    const { records } = await exported(admin)
    expect(stats.points).toEqual(pointsOf(records.filter(({ seq }) => seq <= stats.lastSeq)))
    expect(stats).toMatchObject({ records: stats.lastSeq, firstSeq: 1, segments: 1, oldest: records[0]?.ts })
    expect(stats.perMinute).toBeGreaterThan(0)

    const headers = { authorization: `Bearer ${server.adminKey}`, accept: 'text/event-stream' }
    const stream = await fetch(`${server.url}/v1/events`, { headers })
    const [text] = await Promise.all([stream.text(), server.stop('SIGINT')])
    expect(text).toMatch(/^: airlock\n\nid: \d+\nevent: at\n/)
    expect(text).toMatch(/event: error\ndata: \{"event":"error","error":\{"code":"not_ready",.*\}\}\n\n$/)
  } finally {
    await server.stop('SIGINT')
  }
})

function pointsOf(records: readonly AuditRecord[]): unknown {
  const points = [...new Set(records.map(({ point }) => point))].sort()
  return points.map((point) => ({ point, ...countsOf(records.filter((one) => one.point === point)) }))
}

/** The same numbers, by hand. Quantiles are of buckets, so within 2.2 %. */
function expectSame(summary: AgentSummary, records: readonly AuditRecord[]): void {
  const until = records.filter(({ ts }) => summary.trend.some(({ day }) => ts.startsWith(day)))
  expect(summary.sandboxes).toBe(new Set(until.flatMap(({ sandbox }) => (sandbox === null ? [] : [sandbox]))).size)
  expect(countsIn(summary.total)).toEqual(countsOf(until))
  const points = [...new Set(until.map(({ point }) => point))].sort()
  expect(summary.kinds.map(({ point }) => point)).toEqual(points)
  for (const kind of summary.kinds) {
    const of = until.filter(({ point }) => point === kind.point)
    expect(countsIn(kind)).toEqual(countsOf(of))
    const { done, failed, unknown, denied } = countsOf(of)
    const ended = done + failed + unknown
    expect(kind.failureRate).toBe(ended === 0 ? null : (failed + unknown) / ended)
    expect(kind.denialRate).toBe(ended + denied === 0 ? null : denied / (ended + denied))
    expectDurations(kind, of)
    expectUsage(kind, of)
  }
  for (const day of summary.trend)
    expect(countsIn(day)).toEqual(countsOf(until.filter(({ ts }) => ts.startsWith(day.day))))
}

function expectDurations({ durationMs }: AgentSummary['kinds'][number], records: readonly AuditRecord[]): void {
  const all = records.flatMap((one) => (one.durationMs === undefined ? [] : [one.durationMs])).sort((a, b) => a - b)
  if (all.length === 0) return expect(durationMs).toBeNull()
  const rank = (share: number): number => all[Math.ceil(share * all.length) - 1] ?? 0
  expect(durationMs).toMatchObject({ count: all.length, max: all.at(-1) })
  expect(Math.abs((durationMs?.p50 ?? -1) - rank(0.5))).toBeLessThanOrEqual(rank(0.5) * 0.022)
  expect(Math.abs((durationMs?.p95 ?? -1) - rank(0.95))).toBeLessThanOrEqual(rank(0.95) * 0.022)
}

function expectUsage({ usage }: AgentSummary['kinds'][number], records: readonly AuditRecord[]): void {
  const all = records.flatMap(({ payload }) => (payload['usage'] ? [payload['usage'] as { cpuMs: number | null }] : []))
  if (all.length === 0) return expect(usage).toBeNull()
  const cpus = all.flatMap(({ cpuMs }) => (cpuMs === null ? [] : [cpuMs]))
  expect(usage?.count).toBe(all.length)
  if (cpus.length > 0) expect(usage?.cpuMs).toBeCloseTo(cpus.reduce((sum, one) => sum + one, 0) / cpus.length)
}

const STATUSES = ['requested', 'done', 'failed', 'denied', 'unknown'] as const
type Counts = Record<(typeof STATUSES)[number], number>

function countsIn({ requested, done, failed, denied, unknown }: Counts): Counts {
  return { requested, done, failed, denied, unknown }
}

function countsOf(records: readonly AuditRecord[]): Counts {
  const counts: Counts = { requested: 0, done: 0, failed: 0, denied: 0, unknown: 0 }
  for (const { status } of records) counts[status] += 1
  return counts
}
