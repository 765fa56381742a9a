import type { AuditSink } from '@airlock/audit'
import type { Clock } from '@airlock/std'

/** How many are written in a while, before the others are only counted. */
interface RefusalBounds {
  readonly windowMs: number
  readonly records: number
}

/** Of everybody who comes to the port. */
const AT_THE_PORT: RefusalBounds = { windowMs: 1000, records: 10 }

/** Who was refused, where that is known without believing it. */
interface About {
  readonly tenant: string
  readonly actor: string
  readonly agent?: string | null
  readonly sandbox?: string | null
}

const SYSTEM: About = { tenant: 'system', actor: 'system' }

/**
 * Evidence of refused callers, bounded: anyone can be refused as often as they like. After so many in a while the others
 * are only counted, and the count is a record of its own when the while is over.
 */
export class RefusalRecords {
  readonly #audit: AuditSink
  readonly #clock: Clock
  readonly #bounds: RefusalBounds
  #windowStart = 0
  #written = 0
  #counted = 0
  #last: About = SYSTEM

  constructor(audit: AuditSink, clock: Clock, bounds: RefusalBounds = AT_THE_PORT) {
    this.#audit = audit
    this.#clock = clock
    this.#bounds = bounds
  }

  note(payload: Readonly<Record<string, string>>, about: About = SYSTEM): void {
    const { windowMs, records } = this.#bounds
    const now = this.#clock.now()
    if (now - this.#windowStart >= windowMs) this.#open(now)
    this.#last = about
    if (this.#written < records) {
      this.#written++
      this.#record(payload)
      return
    }
    if (this.#counted === 0) setTimeout(() => this.#writeCount(), windowMs).unref()
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
    this.#audit.note({ ...this.#last, point: 'auth.refuse', status: 'denied', payload })
  }
}
