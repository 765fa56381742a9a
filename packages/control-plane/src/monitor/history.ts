import { AirlockError, type MetricPoint, type MetricResolution } from '@airlock/contract'
import { z } from 'zod'
import {
  findOldestMinute,
  insertDetails,
  insertPoints,
  listDetails,
  listMinutesBefore,
  listPoints,
  MINUTE_MS,
  pruneDetails,
  pruneQuarters,
  QUARTER_MS,
  removeMinutes,
  type StoredPoint,
  type Tally,
} from '../store/metrics.ts'
import type { Store } from '../store/engine/store.ts'
import { nextTurn } from './next-turn.ts'
import { addTallies, type Sampled, toPoint } from './tally.ts'

const HOUR_MS = 60 * MINUTE_MS
/** How long each is kept. */
export const KEPT_MS: Readonly<Record<MetricResolution, number>> = {
  '5s': QUARTER_MS,
  '1m': 24 * HOUR_MS,
  '15m': 7 * 24 * HOUR_MS,
}

/** Rows of one statement, so that nobody waits long for its end. */
const BATCH = 50
/** Subjects whose minutes are put together in one transaction. */
const FOLDED = 16
const PRUNED = 100
/** Steps of each kind in one round; what is left is for the next. */
const STEPS = 20
/** Minutes that wait for a store that takes nothing; older ones are given up. */
const MOST_WAITING = 20_000
/** Rows of one answer: a restart in a minute makes two of it. */
const MOST_ROWS = 5_000

/** The samples of one subject in one minute. */
interface Minute {
  readonly subject: string
  readonly minute: number
  readonly samples: [Sampled, ...Sampled[]]
}

/**
 * What subjects used: every sample for a quarter of an hour, minutes for a day, quarters of an hour for a week. The minute under way is in memory,
 * and written as two rows when it is over: a crash loses it, an orderly stop does not. Minutes become quarters when they are too old
 * to be kept, and until then quarters are read from them, so nothing is counted twice and nothing is late.
 */
export class History {
  readonly #store: Store
  readonly #open = new Map<string, Minute>()
  /** Over, and not written yet. */
  #waiting: Minute[] = []

  constructor(store: Store) {
    this.#store = store
  }

  add(subject: string, sampled: Sampled): void {
    const minute = floor(sampled.at, MINUTE_MS)
    const open = this.#open.get(subject)
    if (open?.minute === minute) {
      open.samples.push(sampled)
      return
    }
    if (open) this.#waiting.push(open)
    this.#open.set(subject, { subject, minute, samples: [sampled] })
  }

  /** What does not live any more gets no more samples. */
  close(isLiving: (subject: string) => boolean): void {
    for (const [subject, open] of this.#open) {
      if (isLiving(subject)) continue
      this.#open.delete(subject)
      this.#waiting.push(open)
    }
  }

  /** Writes what is over. What cannot be written waits for the next time. Answers how many minutes had to be given up. */
  async write(): Promise<number> {
    const lost = Math.max(0, this.#waiting.length - MOST_WAITING)
    this.#waiting.splice(0, lost)
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH)
      await this.#store.quick((db) => insertPoints(db, batch.map(toStoredPoint)))
      await this.#store.quick((db) => insertDetails(db, batch.map(toStoredDetail)))
      const written = new Set(batch)
      this.#waiting = this.#waiting.filter((minute) => !written.has(minute))
      await nextTurn()
    }
    return lost
  }

  /** Puts together and removes what is too old, a bounded part of it. */
  async shrink(now: number): Promise<void> {
    // A row of details is as old as its first sample.
    const details = now - KEPT_MS['5s'] - MINUTE_MS
    await this.#repeat((store) =>
      store.quick((db) => pruneDetails(db, { before: details, subjects: PRUNED })).then((rows) => rows > 0),
    )
    await this.#repeat(() => this.#foldMinutes(now - KEPT_MS['1m']))
    const quarters = now - KEPT_MS['15m'] - QUARTER_MS
    await this.#repeat((store) =>
      store.quick((db) => pruneQuarters(db, { before: quarters, subjects: PRUNED })).then((rows) => rows > 0),
    )
  }

  /** From the oldest on. */
  async read(
    subject: string,
    of: { readonly resolution: MetricResolution; readonly since: number },
  ): Promise<readonly MetricPoint[]> {
    if (of.resolution === '5s') return this.#samples(subject, of.since)
    const spanMs = of.resolution === '1m' ? MINUTE_MS : QUARTER_MS
    const since = floor(of.since, spanMs)
    const resolutionsMs = spanMs === MINUTE_MS ? [MINUTE_MS] : [MINUTE_MS, QUARTER_MS]
    const asked = { subject, resolutionsMs, since, limit: MOST_ROWS }
    const rows = [...(await this.#store.query((db) => listPoints(db, asked)))]
    // What is written meanwhile is in both.
    const known = new Set(rows.filter((row) => row.resolutionMs === MINUTE_MS).map(({ at }) => at))
    rows.push(
      ...this.#unwritten(subject)
        .map(toStoredPoint)
        .filter(({ at }) => !known.has(at) && at >= since),
    )
    return fold(rows, spanMs)
      .toSorted((a, b) => a.at - b.at)
      .map(({ at, tally }) => toPoint(tally, { at, spanMs }))
  }

  async #samples(subject: string, since: number): Promise<readonly MetricPoint[]> {
    const rows = await this.#store.query((db) =>
      listDetails(db, { subject, since: since - MINUTE_MS, limit: MOST_ROWS }),
    )
    const all = new Map(rows.flatMap(({ points }) => parseSamples(points)).map((one) => [one.at, one]))
    for (const minute of this.#unwritten(subject)) for (const one of minute.samples) all.set(one.at, one)
    return [...all.values()]
      .filter(({ at }) => at >= since)
      .toSorted((a, b) => a.at - b.at)
      .map(({ at, tally }) => toPoint(tally, { at: at - tally.countedMs, spanMs: tally.countedMs }))
  }

  #unwritten(subject: string): readonly Minute[] {
    const open = this.#open.get(subject)
    return [...this.#waiting.filter((minute) => minute.subject === subject), ...(open ? [open] : [])]
  }

  /** One quarter of a few subjects, whole or not at all. Answers whether there was one. */
  async #foldMinutes(before: number): Promise<boolean> {
    const oldest = await this.#store.query(findOldestMinute)
    if (oldest === undefined) return false
    const end = floor(oldest, QUARTER_MS) + QUARTER_MS
    if (end > before) return false
    await this.#store.transaction(async (db) => {
      const rows = await listMinutesBefore(db, { before: end, subjects: FOLDED })
      const subjects = [...new Set(rows.map(({ subject }) => subject))]
      const quarters = subjects.flatMap((subject) =>
        fold(
          rows.filter((row) => row.subject === subject),
          QUARTER_MS,
        ).map(({ at, tally }) => ({ subject, resolutionMs: QUARTER_MS, at, ...tally })),
      )
      await insertPoints(db, quarters)
      await removeMinutes(db, { before: end, subjects })
    })
    return true
  }

  async #repeat(step: (store: Store) => Promise<boolean>): Promise<void> {
    for (let steps = 0; steps < STEPS && (await step(this.#store)); steps++) await nextTurn()
  }
}

/** Rows by the stretch of time that they are in. */
function fold(rows: readonly StoredPoint[], spanMs: number): readonly Sampled[] {
  const stretches = new Map<number, Tally>()
  for (const { subject: _subject, resolutionMs: _resolutionMs, at, ...tally } of rows) {
    const begin = floor(at, spanMs)
    const before = stretches.get(begin)
    stretches.set(begin, before ? addTallies(before, tally) : tally)
  }
  return [...stretches].map(([at, tally]) => ({ at, tally }))
}

function floor(at: number, spanMs: number): number {
  return Math.floor(at / spanMs) * spanMs
}

function toStoredPoint({ subject, samples }: Minute): StoredPoint {
  const [{ at }] = samples
  const tally = samples.map((sampled) => sampled.tally).reduce(addTallies)
  return { subject, resolutionMs: MINUTE_MS, at, ...tally }
}

function toStoredDetail({ subject, samples }: Minute): { subject: string; at: number; points: string } {
  const points = samples.map(({ at, tally }) => [
    at,
    tally.countedMs,
    tally.cpuMs,
    tally.cpuMax,
    tally.memorySum,
    tally.pidsSum,
    tally.diskSum,
    tally.throttledMs,
    tally.readBytes,
    tally.writtenBytes,
    tally.oomKills,
  ])
  return { subject, at: samples[0].at, points: JSON.stringify(points) }
}

const value = z.int().nullable()
const samplesText = z.array(z.tuple([z.int(), z.int(), value, value, value, value, value, value, value, value, value]))

function parseSamples(text: string): readonly Sampled[] {
  const parsed = samplesText.safeParse(JSON.parse(text))
  if (!parsed.success) throw new AirlockError('internal', 'A row of metrics is damaged.', { cause: parsed.error })
  return parsed.data.map((fields) => {
    const [at, countedMs, cpuMs, cpuMax, memory, pids, diskSum, throttledMs, readBytes, writtenBytes, oomKills] = fields
    const gauges = { memorySum: memory, memoryMax: memory, pidsSum: pids, pidsMax: pids, diskSum }
    const counted = { cpuMs, cpuMax, throttledMs, readBytes, writtenBytes, oomKills }
    return { at, tally: { samples: 1, countedMs, ...gauges, ...counted } }
  })
}
