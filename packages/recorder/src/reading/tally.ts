import type { RecordFilter } from '@airlock/audit'
import { type AuditRecord, point, type Point, type RecordStatus } from '@airlock/contract'
import { z } from 'zod'
import { KindTally, STATUSES, storedKind } from './kind-tally.ts'

/** A tally as it is beside its segment. */
export const storedTally = z.strictObject({
  records: z.int().min(1),
  firstSeq: z.int().min(1),
  lastSeq: z.int().min(1),
  firstTs: z.iso.datetime(),
  lastTs: z.iso.datetime(),
  isOrdered: z.boolean().optional(),
  agents: z.array(
    z.strictObject({
      agent: z.string().nullable(),
      days: z.array(
        z.strictObject({
          day: z.iso.date(),
          sandboxes: z.array(z.string()),
          kinds: z.array(z.strictObject({ point, ...storedKind.shape })),
        }),
      ),
    }),
  ),
})
export type StoredTally = z.infer<typeof storedTally>

/** What one agent did on one day (UTC, by the time of the record). */
export interface DayTally {
  readonly sandboxes: Set<string>
  readonly kinds: Map<Point, KindTally>
}

interface Range {
  readonly firstSeq: number
  lastSeq: number
  /** The earliest and the latest time: of the first and the last record, unless the clock went back. */
  firstTs: string
  lastTs: string
}

/**
 * What the records of a segment come to: enough for summaries, and to know without reading it that nothing in it
 * matches. Never evidence, and no larger than the segment.
 */
export class Tally {
  readonly #agents = new Map<string | null, Map<string, DayTally>>()
  #records = 0
  #range: Range | undefined
  #isOrdered = true

  static from(stored: StoredTally): Tally {
    const tally = new Tally()
    // One of an earlier version says nothing: its records are in the order of their times.
    const { records, agents, isOrdered = true, ...range } = stored
    tally.#isOrdered = isOrdered
    tally.#records = records
    tally.#range = range
    for (const { agent, days } of agents)
      for (const { day, sandboxes, kinds } of days)
        tally.#days(agent).set(day, {
          sandboxes: new Set(sandboxes),
          kinds: new Map(kinds.map(({ point: of, ...kind }) => [of, new KindTally(kind)])),
        })
    return tally
  }

  get records(): number {
    return this.#records
  }

  /** Undefined when there are no records. */
  get range(): Readonly<Range> | undefined {
    return this.#range
  }

  /** Whether no record has an earlier time than one before it. */
  get isOrdered(): boolean {
    return this.#isOrdered
  }

  add(record: AuditRecord): void {
    const { seq, ts, agent, sandbox } = record
    this.#records += 1
    this.#range ??= { firstSeq: seq, firstTs: ts, lastSeq: seq, lastTs: ts }
    this.#range.lastSeq = seq
    if (ts < this.#range.firstTs) this.#range.firstTs = ts
    if (ts < this.#range.lastTs) this.#isOrdered = false
    else this.#range.lastTs = ts
    const day = this.#day(agent, ts.slice(0, 10))
    if (sandbox !== null) day.sandboxes.add(sandbox)
    let kind = day.kinds.get(record.point)
    if (!kind) day.kinds.set(record.point, (kind = new KindTally()))
    kind.add(record)
  }

  /** The days of one agent. */
  daysOf(agent: string): ReadonlyMap<string, DayTally> {
    return this.#agents.get(agent) ?? new Map<string, DayTally>()
  }

  /** All days of all agents. */
  *days(): Generator<readonly [string, DayTally]> {
    for (const days of this.#agents.values()) yield* days
  }

  /** False only when no record can match. */
  mayMatch(filter: RecordFilter): boolean {
    const range = this.#range
    if (!range || isBefore(range.lastTs, filter.since) || isBefore(filter.until, range.firstTs)) return false
    for (const [agent, days] of this.#agents) {
      if (!isMeant(agent, filter)) continue
      for (const day of days.values()) if (hasMatch(day, filter)) return true
    }
    return false
  }

  /** Undefined when there are no records. */
  toStored(): StoredTally | undefined {
    if (!this.#range) return undefined
    const agents = [...this.#agents].map(([agent, days]) => ({
      agent,
      days: [...days].map(([day, { sandboxes, kinds }]) => ({
        day,
        sandboxes: [...sandboxes],
        kinds: [...kinds].map(([of, kind]) => ({ point: of, ...kind.toStored() })),
      })),
    }))
    return { records: this.#records, ...this.#range, isOrdered: this.#isOrdered, agents }
  }

  #day(agent: string | null, day: string): DayTally {
    const days = this.#days(agent)
    const known = days.get(day)
    if (known) return known
    const fresh: DayTally = { sandboxes: new Set(), kinds: new Map() }
    days.set(day, fresh)
    return fresh
  }

  #days(agent: string | null): Map<string, DayTally> {
    const known = this.#agents.get(agent)
    if (known) return known
    const fresh = new Map<string, DayTally>()
    this.#agents.set(agent, fresh)
    return fresh
  }
}

/** Whether a record matches. */
export function matches(record: AuditRecord, filter: RecordFilter): boolean {
  return (
    isMeant(record.agent, filter) &&
    (filter.sandbox === undefined || record.sandbox === filter.sandbox) &&
    (filter.points?.includes(record.point) ?? true) &&
    (filter.statuses?.includes(record.status) ?? true) &&
    !isBefore(record.ts, filter.since) &&
    !isBefore(filter.until, record.ts)
  )
}

export function isBefore(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && b !== undefined && Date.parse(a) < Date.parse(b)
}

function isMeant(agent: string | null, { agents, anyAgent = false }: RecordFilter): boolean {
  if (agent === null) return !agents && !anyAgent
  return agents?.includes(agent) ?? true
}

function hasMatch(day: DayTally, filter: RecordFilter): boolean {
  const { sandbox, points } = filter
  const statuses: readonly RecordStatus[] = filter.statuses ?? STATUSES
  if (sandbox !== undefined && !day.sandboxes.has(sandbox)) return false
  for (const [of, kind] of day.kinds)
    if ((points?.includes(of) ?? true) && statuses.some((status) => kind.counts[status] > 0)) return true
  return false
}
