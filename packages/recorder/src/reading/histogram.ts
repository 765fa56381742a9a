/** Sixteen buckets for each doubling: what a bucket says is within 2^(1/32), 2.2 %, of what was put into it. */
const PER_DOUBLING = 16
const ZERO = -1_000_000

/** Milliseconds, counted in buckets. Two of them become one by adding, so any window can be put together. */
export class Histogram {
  readonly #buckets: Map<number, number>
  #count = 0
  #max: number

  constructor(from: { readonly buckets: readonly (readonly [number, number])[]; readonly max: number } = EMPTY) {
    this.#buckets = new Map(from.buckets)
    for (const count of this.#buckets.values()) this.#count += count
    this.#max = from.max
  }

  get count(): number {
    return this.#count
  }

  get max(): number {
    return this.#max
  }

  /** Sorted, for the text of an index depends on what is in it and on nothing else. */
  get buckets(): [number, number][] {
    return [...this.#buckets].sort(([a], [b]) => a - b)
  }

  add(ms: number): void {
    this.#put(ms > 0 ? Math.round(Math.log2(ms) * PER_DOUBLING) : ZERO, 1)
    this.#max = Math.max(this.#max, ms)
  }

  merge(other: Histogram): void {
    for (const [bucket, count] of other.#buckets) this.#put(bucket, count)
    this.#max = Math.max(this.#max, other.#max)
  }

  /** The value that this share of all is not above, by nearest rank. */
  quantile(share: number): number {
    let left = Math.ceil(share * this.#count)
    for (const [bucket, count] of this.buckets) {
      left -= count
      if (left <= 0) return bucket === ZERO ? 0 : Math.min(this.#max, 2 ** (bucket / PER_DOUBLING))
    }
    return 0
  }

  #put(bucket: number, count: number): void {
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + count)
    this.#count += count
  }
}

const EMPTY = { buckets: [], max: 0 }
