import type { Clock } from '@airlock/std'

const SECONDS = 60

/** How a chain grows: how fast, and when. Costs nothing while nobody waits for it. */
export class Growth {
  readonly #clock: Clock
  readonly #perSecond = Array.from({ length: SECONDS }, () => ({ second: 0, records: 0 }))
  readonly #waiting = new Set<() => void>()
  #seq = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The chain has records up to `seq` now, so many more than before. */
  add(seq: number, records: number): void {
    this.#seq = seq
    const slot = this.#slotAt(this.#now())
    if (slot) slot.records += records
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  /** Records of the last minute that were written by this process. */
  get perMinute(): number {
    const since = this.#now() - SECONDS
    return this.#perSecond.reduce((sum, { second, records }) => (second > since ? sum + records : sum), 0)
  }

  /** Resolves when the chain has a record after `seq`, or the signal aborts. */
  async beyond(seq: number, signal: AbortSignal): Promise<void> {
    if (this.#seq > seq || signal.aborted) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        this.#waiting.delete(done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      this.#waiting.add(done)
      signal.addEventListener('abort', done, { once: true })
    })
  }

  #slotAt(second: number): { second: number; records: number } | undefined {
    const slot = this.#perSecond[second % SECONDS]
    if (slot && slot.second !== second) {
      slot.second = second
      slot.records = 0
    }
    return slot
  }

  #now(): number {
    return Math.floor(this.#clock.now() / 1000)
  }
}
