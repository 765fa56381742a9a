import { createHash } from 'node:crypto'

/** Numbers that the words it was made of decide, and nothing else. */
export class Random {
  #state: number

  constructor(...words: readonly (string | number)[]) {
    this.#state = createHash('sha256').update(words.join('/')).digest().readUInt32LE(0)
  }

  /** A whole number from 0 to below `count`. */
  below(count: number): number {
    return Math.floor(this.#next() * count)
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0]
  }

  /** By weight: a row of 3 comes three times as often as a row of 1. Preconditions: some row has a weight. */
  weighted<T>(rows: readonly (readonly [T, number])[]): T {
    let left = this.#next() * rows.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [item, weight] of rows) {
      left -= weight
      if (left < 0) return item
    }
    throw new TypeError('There is nothing to choose from.')
  }

  isBelow(share: number): boolean {
    return this.#next() < share
  }

  /** mulberry32: small, fast, and the same everywhere. */
  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
