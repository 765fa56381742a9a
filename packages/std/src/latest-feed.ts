/** Values for any number of listeners: each hears the latest, and the last one for certain. Keeps one value. */
export class LatestFeed<T> {
  #latest: { readonly value: T } | undefined
  #count = 0
  #isOver = false
  #changed = newChange()

  /** Nothing may be pushed after what was `last`. */
  push(value: T, as: 'next' | 'last' = 'next'): void {
    this.#latest = { value }
    this.#count++
    this.#isOver = as === 'last'
    const { resolve } = this.#changed
    this.#changed = newChange()
    resolve(undefined)
  }

  /** From the latest on. A listener that is slow misses some, never the last. */
  async *values(): AsyncGenerator<T> {
    for (let seen = 0; ;) {
      if (this.#latest && this.#count > seen) {
        seen = this.#count
        const isOver = this.#isOver
        yield this.#latest.value
        if (isOver) return
      } else await this.#changed.promise
    }
  }
}

interface Change {
  readonly promise: Promise<undefined>
  readonly resolve: (value: undefined) => void
}

/** As `Promise.withResolvers`, which Node 20 does not have: this package is part of what users install. */
function newChange(): Change {
  let resolve: Change['resolve'] = () => undefined
  const promise = new Promise<undefined>((settle) => (resolve = settle))
  return { promise, resolve }
}
