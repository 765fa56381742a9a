/** Bytes that one sandbox may send and receive a second, all its connections together. */
export class Bandwidth {
  readonly #bytesPerMs: number
  readonly #burstBytes: number
  readonly #now: () => number
  #left: number
  #at: number

  /** `now` is in milliseconds and never goes back. */
  constructor(bitsPerSecond: number, now: () => number = () => performance.now()) {
    this.#bytesPerMs = bitsPerSecond / 8 / 1000
    // A tenth of a second: enough for sockets to be written to in large pieces.
    this.#burstBytes = this.#bytesPerMs * 100
    this.#now = now
    this.#left = this.#burstBytes
    this.#at = now()
  }

  /** Takes bytes that were read already, and answers for how many milliseconds nothing more should be read. */
  spend(bytes: number): number {
    const now = this.#now()
    this.#left = Math.min(this.#burstBytes, this.#left + (now - this.#at) * this.#bytesPerMs) - bytes
    this.#at = now
    return this.#left >= 0 ? 0 : Math.ceil(-this.#left / this.#bytesPerMs)
  }
}
