import { AirlockError } from '@airlock/contract'

/** Lets `burst` through at once and `perSecond` in the long run. */
export class RateLimit {
  readonly #rate: { readonly burst: number; readonly perSecond: number }
  readonly #now: () => number
  #left: number
  #at: number

  constructor(
    rate: { readonly burst: number; readonly perSecond: number },
    now: () => number = () => performance.now(),
  ) {
    this.#rate = rate
    this.#now = now
    this.#left = rate.burst
    this.#at = now()
  }

  /** Throws when there was too much of it. */
  take(): void {
    const { burst, perSecond } = this.#rate
    const now = this.#now()
    this.#left = Math.min(burst, this.#left + ((now - this.#at) / 1000) * perSecond)
    this.#at = now
    if (this.#left < 1) throw new AirlockError('too_many_requests')
    this.#left -= 1
  }
}
