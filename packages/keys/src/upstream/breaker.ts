import { AirlockError } from '@airlock/contract'

const FAILURES = 5
const OPEN_MS = 30_000

export type BreakerState = 'closed' | 'open' | 'half-open'

/**
 * After some failures to connect in a row nothing is sent for a while: callers hear at once what they would wait for. Then
 * one call is let through; if it gets a connection, all are.
 */
export class Breaker {
  readonly #now: () => number
  #failures = 0
  #openUntil: number | undefined
  #isTrying = false

  /** `now` is in milliseconds and never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  get state(): BreakerState {
    if (this.#openUntil === undefined) return 'closed'
    return this.#now() < this.#openUntil ? 'open' : 'half-open'
  }

  /** Throws while nothing may be sent. A caller that passes calls `succeeded`, `failed` or `abandoned`, once. */
  enter(): void {
    const { state } = this
    if (state === 'closed') return
    if (state === 'open' || this.#isTrying) throw this.#refusal()
    this.#isTrying = true
  }

  succeeded(): void {
    this.#failures = 0
    this.#openUntil = undefined
    this.#isTrying = false
  }

  /** Answers whether this failure opened the breaker. */
  failed(): boolean {
    this.#failures += 1
    this.#isTrying = false
    if (this.#failures >= FAILURES) this.#openUntil = this.#now() + OPEN_MS
    return this.#failures === FAILURES
  }

  /** The caller left before the upstream did anything. */
  abandoned(): void {
    this.#isTrying = false
  }

  #refusal(): AirlockError {
    const seconds = Math.max(1, Math.ceil(((this.#openUntil ?? 0) - this.#now()) / 1000))
    const message = `The provider could not be reached ${this.#failures} times in a row; it is tried again in ${seconds} s.`
    return new AirlockError('upstream_unavailable', message, { retryAfterS: seconds })
  }
}
