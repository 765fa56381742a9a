import type { AuditRecord, RecordStatus, StatusCounts } from '@airlock/contract'
import { z } from 'zod'
import { Histogram } from './histogram.ts'

export const STATUSES = ['requested', 'done', 'failed', 'denied', 'unknown'] as const satisfies readonly RecordStatus[]

const count = z.int().min(0)

/** As it is in an index: positions instead of names, for there may be thousands. */
export const storedKind = z.strictObject({
  /** By status, in the order of `STATUSES`. */
  counts: z.tuple([count, count, count, count, count]),
  durations: z.array(z.tuple([z.int(), count])),
  max: z.number().min(0),
  /** How many said what they used; the sum and the number of those that said so, for cpu and memory. */
  usage: z.tuple([count, z.number(), count, z.number(), count]),
})
export type StoredKind = z.infer<typeof storedKind>

/** What the records of one point, one agent and one day come to. */
export class KindTally {
  readonly counts: Record<RecordStatus, number>
  readonly durations: Histogram
  readonly #usage: StoredKind['usage']

  constructor(from?: StoredKind) {
    const [requested, done, failed, denied, unknown] = from?.counts ?? [0, 0, 0, 0, 0]
    this.counts = { requested, done, failed, denied, unknown }
    this.durations = new Histogram(from && { buckets: from.durations, max: from.max })
    this.#usage = from ? [...from.usage] : [0, 0, 0, 0, 0]
  }

  add(record: AuditRecord): void {
    this.counts[record.status] += 1
    if (record.durationMs !== undefined) this.durations.add(record.durationMs)
    const { usage } = record.payload
    if (typeof usage === 'object' && usage !== null) this.#addUsage(usage)
  }

  merge(other: KindTally): void {
    for (const status of STATUSES) this.counts[status] += other.counts[status]
    this.durations.merge(other.durations)
    for (const i of [0, 1, 2, 3, 4] as const) this.#usage[i] += other.#usage[i]
  }

  /** Averages of what the kernel counted; null where no record says it. */
  get usage(): {
    readonly count: number
    readonly cpuMs: number | null
    readonly memoryPeakBytes: number | null
  } | null {
    const [counted, cpu, cpus, memory, memories] = this.#usage
    if (counted === 0) return null
    return {
      count: counted,
      cpuMs: cpus === 0 ? null : cpu / cpus,
      memoryPeakBytes: memories === 0 ? null : memory / memories,
    }
  }

  toStored(): StoredKind {
    const { requested, done, failed, denied, unknown } = this.counts
    const { buckets, max } = this.durations
    return { counts: [requested, done, failed, denied, unknown], durations: buckets, max, usage: [...this.#usage] }
  }

  /** By hand, for every record passes here. What says neither is no usage. */
  #addUsage(usage: object): void {
    const cpuMs = 'cpuMs' in usage ? usage.cpuMs : undefined
    const memory = 'memoryPeakBytes' in usage ? usage.memoryPeakBytes : undefined
    if (cpuMs === undefined || memory === undefined) return
    this.#usage[0] += 1
    if (typeof cpuMs === 'number') {
      this.#usage[1] += cpuMs
      this.#usage[2] += 1
    }
    if (typeof memory === 'number') {
      this.#usage[3] += memory
      this.#usage[4] += 1
    }
  }
}

export function addCounts(to: Record<RecordStatus, number>, more: StatusCounts): void {
  for (const status of STATUSES) to[status] += more[status]
}

export function noCounts(): Record<RecordStatus, number> {
  return { requested: 0, done: 0, failed: 0, denied: 0, unknown: 0 }
}
