import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RecordFilter } from '@airlock/audit'
import type { AuditRecord, NewRecord } from '@airlock/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pageChain } from '../reading/follow.ts'
import { Histogram } from '../reading/histogram.ts'
import { queryChain } from '../reading/query.ts'
import { summarize } from '../reading/summary.ts'
import { matches } from '../reading/tally.ts'
import { append, ChainDir, exportLines } from '../testing/chain-dir.ts'

const AGENTS = ['one', 'two', 'three'] as const
const SANDBOXES = ['sbx_a', 'sbx_b', 'sbx_c'] as const
const POINTS = ['command.run', 'file.read', 'sandbox.create'] as const
const STATUSES = ['requested', 'done', 'failed', 'denied'] as const
const HOUR = 3_600_000

const someOf = <T>(values: readonly T[]) => fc.option(fc.constantFrom(...values), { nil: null })
const record = fc.record({
  agent: someOf(AGENTS),
  sandbox: someOf(SANDBOXES),
  point: fc.constantFrom(...POINTS),
  status: fc.constantFrom(...STATUSES),
  durationMs: fc.integer({ min: 0, max: 100_000 }),
  /** How long after the one before, in hours. */
  later: fc.integer({ min: 0, max: 9 }),
})
const moment = fc
  .integer({ min: -10, max: 300 })
  .map((hours) => new Date(Date.UTC(2026, 0, 1) + hours * HOUR).toISOString())
const filter: fc.Arbitrary<RecordFilter> = fc.record(
  {
    agents: fc.subarray([...AGENTS, 'nobody']),
    anyAgent: fc.boolean(),
    sandbox: fc.constantFrom(...SANDBOXES, 'sbx_none'),
    points: fc.subarray([...POINTS]),
    statuses: fc.subarray([...STATUSES]),
    since: moment,
    until: moment,
  },
  { requiredKeys: [] },
)

describe('an index', () => {
  it('finds what a plain scan finds, whatever is asked for, forwards and backwards', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(record, { maxLength: 60 }),
        fc.array(filter, { minLength: 1, maxLength: 8 }),
        expectSame,
      ),
      { numRuns: 25 },
    )
  }, 120_000)

  it('is made anew when it is missing, damaged or of other bytes', async () => {
    await using home = new ChainDir()
    const place = await fill(home, 40)
    const before = await found(place, { agents: ['one'] })
    expect(before.length).toBeGreaterThan(0)
    const indexes = readdirSync(home.dir).filter((name) => name.endsWith('.index.json'))
    expect(indexes.length).toBeGreaterThan(2)
    const [first = '', second = '', third = ''] = indexes.map((name) => join(home.dir, name))
    const whole = [first, second, third].map((path) => readFileSync(path, 'utf8'))
    rmSync(first)
    writeFileSync(second, 'not an index')
    // One that hides everything, and is of other bytes.
    writeFileSync(third, whole[0] ?? '')
    const again = await home.open()
    expect(await found(again, { agents: ['one'] })).toEqual(before)
    expect([first, second, third].map((path) => readFileSync(path, 'utf8'))).toEqual(whole)
  })

  it('made while the segment was written is the one that is made of the segment', async () => {
    await using home = new ChainDir()
    const place = await fill(home, 40)
    await found(place, {})
    const read = (): string[] =>
      readdirSync(home.dir)
        .filter((name) => name.endsWith('.index.json'))
        .map((name) => readFileSync(join(home.dir, name), 'utf8'))
    const made = read()
    for (const { segment, tally } of home.sealed) await place.archive.seal(segment, tally)
    expect(read()).toEqual(made)
  })
})

describe('a summary', () => {
  it('says what the records of its days say, over all segments', async () => {
    await using home = new ChainDir()
    const place = await home.open()
    const usage = { cpuMs: 10, memoryPeakBytes: 100 }
    await append(place.chain, { agent: 'one', status: 'requested' })
    home.clock.at += 24 * HOUR
    const durations = Array.from({ length: 40 }, (_, n) => (n + 1) * 10)
    for (const durationMs of durations)
      await append(place.chain, { agent: 'one', sandbox: `sbx_${durationMs % 3}`, durationMs, payload: { usage } })
    await append(place.chain, {
      agent: 'one',
      status: 'failed',
      durationMs: 5000,
      payload: { usage: { ...usage, cpuMs: null } },
    })
    await append(place.chain, { agent: 'one', status: 'denied' })
    await append(place.chain, { agent: 'two', status: 'denied' })
    const counts = { requested: 0, done: 40, failed: 1, denied: 1, unknown: 0 }
    const summary = await summarize(place, { agent: 'one', from: '2026-01-02', to: '2026-01-03' })
    const rates = { failureRate: 1 / 41, denialRate: 1 / 42 }
    expect(summary).toEqual({
      agent: 'one',
      from: '2026-01-02',
      to: '2026-01-03',
      complete: true,
      sandboxes: 3,
      total: { ...counts, ...rates },
      kinds: [
        {
          point: 'command.run',
          ...counts,
          ...rates,
          durationMs: { count: 41, p50: expect.closeTo(210, -1), p95: expect.closeTo(390, -1.5), max: 5000 },
          usage: { count: 41, cpuMs: 10, memoryPeakBytes: 100 },
        },
      ],
      trend: [
        { day: '2026-01-02', ...counts, sandboxes: 3 },
        { day: '2026-01-03', requested: 0, done: 0, failed: 0, denied: 0, unknown: 0, sandboxes: 0 },
      ],
    })
  })

  it('has quantiles within 2.2 % of what they are, also put together of parts', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.integer({ min: 0, max: 10_000_000 })), { minLength: 1 }), (parts) => {
        const all = parts.flat().toSorted((a, b) => a - b)
        const whole = new Histogram()
        for (const part of parts) {
          const one = new Histogram()
          for (const value of part) one.add(value)
          whole.merge(new Histogram({ buckets: one.buckets, max: one.max }))
        }
        for (const share of [0.5, 0.95, 1]) {
          const exact = all[Math.ceil(share * all.length) - 1] ?? 0
          expect(Math.abs(whole.quantile(share) - exact)).toBeLessThanOrEqual(exact * 0.022)
        }
        expect(whole.max).toBe(all.at(-1) ?? 0)
      }),
    )
  })
})

async function expectSame(
  records: readonly (Partial<NewRecord> & { readonly later: number })[],
  filters: readonly RecordFilter[],
): Promise<void> {
  await using home = new ChainDir()
  const place = await home.open()
  for (const { later, ...one } of records) {
    home.clock.at += later * HOUR
    await append(place.chain, one)
  }
  const lines = await exportLines(place)
  const all = lines.map((line) => JSON.parse(line) as AuditRecord).filter((one) => !('signature' in one))
  for (const asked of filters) {
    const meant = all.filter((one) => matches(one, asked))
    expect(await found(place, asked)).toEqual(meant)
    expect(await foundForwards(place, asked)).toEqual(meant)
  }
}

type Place = Awaited<ReturnType<ChainDir['open']>>

/** All pages, newest first; turned round. */
async function found(place: Place, asked: RecordFilter): Promise<AuditRecord[]> {
  const records: AuditRecord[] = []
  let before: number | null = Infinity
  while (before !== null) {
    const page = await queryChain(place, { filter: asked, limit: 7, before })
    records.push(...page.records)
    before = page.nextCursor === null ? null : Number(page.nextCursor)
  }
  return records.toReversed()
}

async function foundForwards(place: Place, asked: RecordFilter): Promise<AuditRecord[]> {
  const records: AuditRecord[] = []
  const { seq } = place.chain.snapshot.position
  for (let after = 0; after < seq;) {
    const page = await pageChain(place, { filter: asked, after, limit: 5 })
    records.push(...page.records)
    expect(page.after).toBeGreaterThan(after)
    after = page.after
  }
  return records
}

async function fill(home: ChainDir, count: number): Promise<Place> {
  const place = await home.open()
  for (let n = 0; n < count; n++) {
    const agent = AGENTS[n % 3] ?? null
    await append(place.chain, { agent, sandbox: `sbx_${n}`, durationMs: n, payload: { n } })
  }
  return place
}
