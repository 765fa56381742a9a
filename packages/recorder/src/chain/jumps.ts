import type { Clock } from '@airlock/std'

/** A difference between the clock and the time that went by which is no mere correction. */
const JUMP_MS = 5000

export interface Jump {
  /** What the clock should have said, and what it says. */
  readonly from: number
  readonly to: number
}

/** Compares what the clock says with the time that went by. */
export class Jumps {
  readonly #clock: Clock
  readonly #elapsed: () => number
  #wall: number
  #at: number

  /** `since` is what the clock said last in an earlier life: it can only be seen to have gone back since then. */
  constructor(clock: Clock, elapsed: () => number, since = 0) {
    this.#clock = clock
    this.#elapsed = elapsed
    this.#wall = Math.max(since, clock.now())
    this.#at = elapsed()
  }

  /** The jump since the last look, if there was one: so each edge is seen once. */
  look(): Jump | undefined {
    const to = this.#clock.now()
    const at = this.#elapsed()
    const from = this.#wall + (at - this.#at)
    this.#wall = to
    this.#at = at
    return Math.abs(to - from) > JUMP_MS ? { from, to } : undefined
  }
}

/** A clock for what is too old: one that jumps forward while we run makes nothing older. */
export function steadyClock(clock: Clock, elapsed: () => number): Clock {
  const offset = clock.now() - elapsed()
  return { now: () => Math.min(clock.now(), offset + elapsed()) }
}
