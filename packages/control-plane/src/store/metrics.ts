import { z } from 'zod'
import { rawQuery } from './engine/raw-query.ts'
import type { MetricPointTable } from './engine/schema.ts'
import type { Queries } from './engine/store.ts'

export const MINUTE_MS = 60_000
export const QUARTER_MS = 15 * MINUTE_MS

/** What samples of a subject add up to, from its first one on. A subject is a sandbox, or an agent on a node. */
export type StoredPoint = Readonly<MetricPointTable>
/** That alone. */
export type Tally = Omit<StoredPoint, 'subject' | 'resolutionMs' | 'at'>

/** The samples of a minute, as whoever wrote them knows to read them. */
export interface StoredDetail {
  readonly subject: string
  readonly at: number
  readonly points: string
}

const POINT_COLUMNS: Readonly<Record<string, (point: StoredPoint) => string | number | null>> = {
  subject: (point) => point.subject,
  resolution_ms: (point) => point.resolutionMs,
  at: (point) => point.at,
  samples: (point) => point.samples,
  counted_ms: (point) => point.countedMs,
  cpu_ms: (point) => point.cpuMs,
  cpu_max: (point) => point.cpuMax,
  memory_sum: (point) => point.memorySum,
  memory_max: (point) => point.memoryMax,
  pids_sum: (point) => point.pidsSum,
  pids_max: (point) => point.pidsMax,
  disk_sum: (point) => point.diskSum,
  throttled_ms: (point) => point.throttledMs,
  read_bytes: (point) => point.readBytes,
  written_bytes: (point) => point.writtenBytes,
  oom_kills: (point) => point.oomKills,
}

const sum = z.int().nullable()
const storedPoint = z.object({
  subject: z.string(),
  resolutionMs: z.int(),
  at: z.int(),
  samples: z.int(),
  countedMs: z.int(),
  cpuMs: sum,
  cpuMax: sum,
  memorySum: sum,
  memoryMax: sum,
  pidsSum: sum,
  pidsMax: sum,
  diskSum: sum,
  throttledMs: sum,
  readBytes: sum,
  writtenBytes: sum,
  oomKills: sum,
})
const storedDetail = z.object({ subject: z.string(), at: z.int(), points: z.string() })

/** What is there stays as it is: the same subject and time is the same point. */
export async function insertPoints(db: Queries, points: readonly StoredPoint[]): Promise<void> {
  const columns = Object.keys(POINT_COLUMNS)
  const rows = points.map((point) => Object.values(POINT_COLUMNS).map((valueOf) => valueOf(point)))
  await insertRows(db, { table: 'metric_points', columns, rows })
}

/** The same of details. */
export async function insertDetails(db: Queries, details: readonly StoredDetail[]): Promise<void> {
  const rows = details.map(({ subject, at, points }) => [subject, at, points])
  await insertRows(db, { table: 'metric_details', columns: ['subject', 'at', 'points'], rows })
}

/** From the oldest on, of one moment: what is a minute now and part of a quarter of an hour soon is there once. */
export async function listPoints(
  db: Queries,
  of: {
    readonly subject: string
    readonly resolutionsMs: readonly number[]
    readonly since: number
    readonly limit: number
  },
): Promise<readonly StoredPoint[]> {
  const query = db
    .selectFrom('metricPoints')
    .selectAll()
    .where('subject', '=', of.subject)
    .where('resolutionMs', 'in', of.resolutionsMs)
    .where('at', '>=', of.since)
  return z.array(storedPoint).parse(await query.orderBy('at').limit(of.limit).execute())
}

export async function listDetails(
  db: Queries,
  of: { readonly subject: string; readonly since: number; readonly limit: number },
): Promise<readonly StoredDetail[]> {
  const query = db.selectFrom('metricDetails').selectAll().where('subject', '=', of.subject).where('at', '>=', of.since)
  return z.array(storedDetail).parse(await query.orderBy('at').limit(of.limit).execute())
}

/** When the oldest minute that is kept begins. */
export async function findOldestMinute(db: Queries): Promise<number | undefined> {
  const { rows } = await rawQuery(db, 'select min(at) as at from metric_points where resolution_ms = $1', [MINUTE_MS])
  return (
    z
      .int()
      .nullable()
      .parse(rows[0]?.['at'] ?? null) ?? undefined
  )
}

/** All minutes of a few subjects before a time. */
export async function listMinutesBefore(
  db: Queries,
  of: { readonly before: number; readonly subjects: number },
): Promise<readonly StoredPoint[]> {
  const old = db
    .selectFrom('metricPoints')
    .select('subject')
    .distinct()
    .where('resolutionMs', '=', MINUTE_MS)
    .where('at', '<', of.before)
    .limit(of.subjects)
  const subjects = (await old.execute()).map(({ subject }) => subject)
  if (subjects.length === 0) return []
  const query = db
    .selectFrom('metricPoints')
    .selectAll()
    .where('resolutionMs', '=', MINUTE_MS)
    .where('at', '<', of.before)
    .where('subject', 'in', subjects)
  return z.array(storedPoint).parse(await query.orderBy('subject').orderBy('at').execute())
}

/** The minutes of these subjects before a time. */
export async function removeMinutes(
  db: Queries,
  of: { readonly before: number; readonly subjects: readonly string[] },
): Promise<void> {
  await db
    .deleteFrom('metricPoints')
    .where('resolutionMs', '=', MINUTE_MS)
    .where('at', '<', of.before)
    .where('subject', 'in', of.subjects)
    .execute()
}

interface Old {
  readonly before: number
  /** Subjects at once: each has at most a few rows that are too old, if somebody looks often. */
  readonly subjects: number
}

/** Removes what is older. Answers how many rows that were; none says that nothing older is left. */
export async function pruneDetails(db: Queries, { before, subjects }: Old): Promise<number> {
  const text =
    'delete from metric_details where at < $1 and subject in (select subject from metric_details where at < $1 order by at limit $2)'
  return (await rawQuery(db, text, [before, subjects])).changes
}

/** The same of fifteen minutes. */
export async function pruneQuarters(db: Queries, { before, subjects }: Old): Promise<number> {
  const which = 'resolution_ms = $3 and at < $1'
  const text = `delete from metric_points where ${which} and subject in (select subject from metric_points where ${which} order by at limit $2)`
  return (await rawQuery(db, text, [before, subjects, QUARTER_MS])).changes
}

/** Few lengths, for each is a statement that is kept; a statement is short enough that nobody waits long for its end. */
const LENGTHS = [50, 10, 1] as const

async function insertRows(
  db: Queries,
  of: {
    readonly table: string
    readonly columns: readonly string[]
    readonly rows: readonly (readonly (string | number | null)[])[]
  },
): Promise<void> {
  const { table, columns, rows } = of
  for (let done = 0; done < rows.length;) {
    const length = LENGTHS.find((one) => one <= rows.length - done) ?? 1
    const values = Array.from(
      { length },
      (_, row) => `(${columns.map((_name, column) => `$${row * columns.length + column + 1}`).join(', ')})`,
    )
    const text = `insert into ${table} (${columns.join(', ')}) values ${values.join(', ')} on conflict do nothing`
    await rawQuery(db, text, rows.slice(done, done + length).flat())
    done += length
  }
}
