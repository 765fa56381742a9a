import { FairQueue } from './fair-queue.ts'

/** Requests that only take power away, and the rest: neither waits behind the other. */
export type Lane = 'reduces' | 'other'

const LANES = ['reduces', 'other'] as const
/** Accepting never makes work wait for longer at once. */
const MOST_OWED_MS = 50

/**
 * Who begins when. libuv accepts one connection in a turn of the event loop, so turns have to be short, however many callers
 * are busy: in each one request of each kind begins. While connections come in, turns with work and turns that only accept take
 * the same time, so that the queue of the kernel, where nobody can overtake, is short.
 */
export class Turns {
  readonly #queues: Readonly<Record<Lane, FairQueue<() => void>>> = {
    reduces: new FairQueue(),
    other: new FairQueue(),
  }
  readonly #begun = new Set<Lane>()
  readonly #now: () => number
  #isWatched = false
  #hasAccepted = false
  #acceptsOnly = false
  #turnedAt = 0
  /** How long turns should accept only. */
  #owedMs = 0

  /** `now` is in milliseconds and never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Calls `begin` in its turn, perhaps at once. Returns how to leave the queue. */
  take(lane: Lane, of: readonly [group: string, member: string], begin: () => void): () => void {
    this.#watch()
    if (this.#acceptsOnly || this.#begun.has(lane) || !this.#queues[lane].isEmpty)
      return this.#queues[lane].push(of, begin)
    this.#begun.add(lane)
    begin()
    return () => {}
  }

  /** A connection was accepted in this turn: the kernel may hold more. */
  accepted(): void {
    this.#hasAccepted = true
  }

  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    this.#turnedAt = this.#now()
    setImmediate(() => this.#turn())
  }

  /** Runs once in each turn of the event loop in which anything began or waits. */
  #turn(): void {
    const now = this.#now()
    const spentMs = now - this.#turnedAt
    this.#turnedAt = now
    this.#owedMs = this.#begun.size > 0 ? Math.min(spentMs, MOST_OWED_MS) : this.#owedMs - spentMs
    this.#acceptsOnly = this.#hasAccepted && this.#owedMs > 0
    this.#hasAccepted = false
    this.#begun.clear()
    if (!this.#acceptsOnly) for (const lane of LANES) this.#beginNext(lane)
    this.#isWatched = this.#acceptsOnly || this.#begun.size > 0 || LANES.some((lane) => !this.#queues[lane].isEmpty)
    if (this.#isWatched) setImmediate(() => this.#turn())
  }

  #beginNext(lane: Lane): void {
    const begin = this.#queues[lane].shift()
    if (!begin) return
    this.#begun.add(lane)
    begin()
  }
}
