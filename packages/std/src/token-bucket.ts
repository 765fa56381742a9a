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
  /** Below zero when some were taken that are not there yet. */
  #left: number
  #at: number

  /** `now` is in milliseconds and never goes back. */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.#rate = rate
    this.#now = now
    this.#left = rate.burst
    this.#at = now()
  }

  /** Takes one that is there within so many seconds, or none; returns after how many seconds there is one. */
  take(withinS = 0): number {
    const { burst, perSecond } = this.#rate
    const now = this.#now()
    this.#left = Math.min(burst, this.#left + ((now - this.#at) / 1000) * perSecond)
    this.#at = now
    const waitS = Math.max(0, (1 - this.#left) / perSecond)
    if (waitS <= withinS) this.#left -= 1
    return waitS
  }

  /** One that was taken was not used. */
  giveBack(): void {
    this.#left += 1
  }
}
