import { setImmediate as nextTurn } from 'node:timers/promises'

/** Of the time of one turn of the event loop. */
const MOST_MS = 4

/**
 * What one sandbox takes of the event loop: after a few milliseconds in one turn its work waits for the next one, so that many
 * streams at full rate hold up their own sandbox and no other.
 */
export class LoopShare {
  #spentMs = 0
  #isTurnCounted = false

  async run<T>(work: () => T): Promise<T> {
    while (this.#spentMs >= MOST_MS) await nextTurn()
    const begunAt = performance.now()
    try {
      return work()
    } finally {
      this.#spentMs += performance.now() - begunAt
      this.#countTurn()
    }
  }

  #countTurn(): void {
    if (this.#isTurnCounted) return
    this.#isTurnCounted = true
    setImmediate(() => {
      this.#isTurnCounted = false
      this.#spentMs = 0
    })
  }
}
