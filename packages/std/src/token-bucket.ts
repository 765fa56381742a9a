export interface Rate {
  /** How many are let through at once. */
  readonly burst: number
  /** How many in the long run. */
  readonly perSecond: number
}

/** Lets `burst` through at once and `perSecond` in the long run. */
export class TokenBucket {
  readonly #rate: Rate
  readonly #now: () => number
  #left: number
  #at: number

  /** `now` is in milliseconds and never goes back. */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.#rate = rate
    this.#now = now
    this.#left = rate.burst
    this.#at = now()
  }

  /** Takes one, and answers 0; or takes none, and answers after how many seconds there is one. */
  take(): number {
    const { burst, perSecond } = this.#rate
    const now = this.#now()
    this.#left = Math.min(burst, this.#left + ((now - this.#at) / 1000) * perSecond)
    this.#at = now
    if (this.#left < 1) return (1 - this.#left) / perSecond
    this.#left -= 1
    return 0
  }
}
