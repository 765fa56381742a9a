import type { NoteOptions, StagedSink, Written } from '@airlock/audit'
import type { NewRecord } from '@airlock/contract'

interface DenialBounds {
  readonly windowMs: number
  /** Hosts of one sandbox that are told apart in a window. */
  readonly hosts: number
  /** Sandboxes with denials at once. */
  readonly sandboxes: number
}

const USUAL: DenialBounds = { windowMs: 60_000, hosts: 40, sandboxes: 10_000 }

interface Window {
  readonly timer: NodeJS.Timeout
  /** By host and port; null is all that are not told apart. */
  readonly counts: Map<string | null, { refusals: number; latest: NewRecord }>
}

/**
 * Evidence of connections that were denied, bounded: the first for a host and port is written as it is, the others of the same
 * minute are counted, and the count is a record when the minute is over. The `refusals` of all of them add up. Everything else
 * passes.
 */
export class CountedDenials implements StagedSink {
  readonly #to: StagedSink
  readonly #bounds: DenialBounds
  readonly #windows = new Map<string, Window>()

  constructor(to: StagedSink, bounds: Partial<DenialBounds> = {}) {
    this.#to = to
    this.#bounds = { ...USUAL, ...bounds }
  }

  async require(record: NewRecord): Promise<void> {
    await this.#to.require(record)
  }

  async requireWritten(record: NewRecord): Promise<Written> {
    return this.#to.requireWritten(record)
  }

  note(record: NewRecord, options?: NoteOptions): void {
    if (record.point !== 'network.connect' || record.status !== 'denied') this.#to.note(record, options)
    else this.#count(record)
  }

  async flush(timeoutMs: number): Promise<void> {
    for (const sandbox of this.#windows.keys()) this.#close(sandbox)
    await this.#to.flush(timeoutMs)
  }

  #count(record: NewRecord): void {
    const { counts } = this.#windowOf(record.sandbox ?? '')
    const { host, port } = record.payload ?? {}
    const place = JSON.stringify([host, port, record.error?.code])
    const known = counts.get(place)
    if (!known && counts.size < this.#bounds.hosts) {
      counts.set(place, { refusals: 0, latest: record })
      return this.#to.note({ ...record, payload: { ...record.payload, refusals: 1 } })
    }
    const count = known ?? counts.get(null) ?? { refusals: 0, latest: otherHosts(record) }
    if (!known) counts.set(null, count)
    count.refusals += 1
    if (known) count.latest = record
  }

  #windowOf(sandbox: string): Window {
    const known = this.#windows.get(sandbox)
    if (known) return known
    const [oldest] = this.#windows.keys()
    if (oldest !== undefined && this.#windows.size >= this.#bounds.sandboxes) this.#close(oldest)
    const timer = setTimeout(() => this.#close(sandbox), this.#bounds.windowMs).unref()
    const fresh = { timer, counts: new Map() }
    this.#windows.set(sandbox, fresh)
    return fresh
  }

  #close(sandbox: string): void {
    const window = this.#windows.get(sandbox)
    if (!window) return
    clearTimeout(window.timer)
    this.#windows.delete(sandbox)
    for (const { refusals, latest } of window.counts.values())
      if (refusals > 0) this.#to.note({ ...latest, payload: { ...latest.payload, refusals } })
  }
}

/** Says nothing that is not true of all of them. */
function otherHosts({ decision: _decision, error: _error, ...record }: NewRecord): NewRecord {
  return { ...record, payload: { host: null, port: null } }
}
