import type { AuditSink } from '@airlock/audit'
import type { Clock } from '@airlock/std'

const WINDOW_MS = 1000
const RECORDS_A_WINDOW = 10

/**
 * Evidence of refused callers, bounded: anyone can be refused as often as they like. After ten in a second the others
 * are only counted, and the count is a record of its own when the second is over.
 */
export class RefusalRecords {
  readonly #audit: AuditSink
  readonly #clock: Clock
  #windowStart = 0
  #written = 0
  #counted = 0

  constructor(audit: AuditSink, clock: Clock) {
    this.#audit = audit
    this.#clock = clock
  }

  note(payload: Readonly<Record<string, string>>): void {
    const now = this.#clock.now()
    if (now - this.#windowStart >= WINDOW_MS) this.#open(now)
    if (this.#written < RECORDS_A_WINDOW) {
      this.#written++
      this.#record(payload)
      return
    }
    if (this.#counted === 0) setTimeout(() => this.#writeCount(), WINDOW_MS).unref()
    this.#counted++
  }

  #open(now: number): void {
    this.#windowStart = now
    this.#written = 0
    this.#writeCount()
  }

  #writeCount(): void {
    if (this.#counted === 0) return
    this.#record({ reason: 'more of the same', refusals: this.#counted })
    this.#counted = 0
  }

  #record(payload: Readonly<Record<string, string | number>>): void {
    this.#audit.note({ tenant: 'system', actor: 'system', point: 'auth.refuse', status: 'denied', payload })
  }
}
