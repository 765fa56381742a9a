import { FairQueue } from './fair-queue.ts'

/** `reduces` is for requests that only take power away. Lanes do not wait for one another. */
export type Lane = 'reduces' | 'other'

const LANES = ['reduces', 'other'] as const
/** Longest time in which connections are accepted and no request begins. */
const MOST_OWED_MS = 50

/**
 * Schedules the begin of requests over turns of the event loop. libuv accepts one connection per turn, so turns must be short
 * with any number of busy callers: in each turn one request of each lane begins. While connections arrive, as much time is spent
 * on turns that only accept as on turns with work. So the listen queue of the kernel, which is first in, first out, stays short.
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
  /** Time left in which turns only accept. */
  #owedMs = 0

  /** `now` is in milliseconds and never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Calls `begin` in its turn, perhaps at once. Returns a function that leaves the queue. */
  take(lane: Lane, of: readonly [group: string, member: string], begin: () => void): () => void {
    this.#watch()
    if (this.#acceptsOnly || this.#begun.has(lane) || !this.#queues[lane].isEmpty)
      return this.#queues[lane].push(of, begin)
    this.#begun.add(lane)
    begin()
    return () => {}
  }

  /** Notes that a connection was accepted in this turn: the kernel may hold more. */
  accepted(): void {
    this.#hasAccepted = true
  }

  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    this.#turnedAt = this.#now()
    setImmediate(() => this.#turn())
  }

  /** Runs once per turn of the event loop while requests begin or wait. */
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
