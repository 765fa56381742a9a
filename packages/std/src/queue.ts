/**
 * A bounded queue between one producer and one consumer. `push` waits while `weight` of what is queued is at the
 * bound: backpressure, not loss. Iteration ends after `end()`, or throws what `fail()` was given.
 */
export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly #items: { item: T; weight: number }[] = []
  readonly #bound: number
  #weight = 0
  #over: { error?: unknown } | undefined
  #wakeConsumer: (() => void) | undefined
  #wakeProducer: (() => void) | undefined

  constructor(bound: number) {
    this.#bound = bound
  }

  /** Resolves false when the queue is over: nobody will read the item. */
  async push(item: T, weight = 1): Promise<boolean> {
    while (!this.#over && this.#weight > 0 && this.#weight + weight > this.#bound)
      await new Promise<void>((resolve) => (this.#wakeProducer = resolve))
    if (this.#over) return false
    this.#items.push({ item, weight })
    this.#weight += weight
    this.#wakeConsumer?.()
    return true
  }

  end(): void {
    this.#finish({})
  }

  fail(error: unknown): void {
    this.#finish({ error })
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    try {
      for (;;) {
        const next = await this.#take()
        if (!next) return
        this.#weight -= next.weight
        this.#wakeProducer?.()
        yield next.item
      }
    } finally {
      this.#items.length = 0
      this.end()
    }
  }

  async #take(): Promise<{ item: T; weight: number } | undefined> {
    for (;;) {
      const next = this.#items.shift()
      if (next) return next
      if (this.#over && 'error' in this.#over) throw this.#over.error
      if (this.#over) return undefined
      await new Promise<void>((resolve) => (this.#wakeConsumer = resolve))
    }
  }

  #finish(over: { error?: unknown }): void {
    this.#over ??= over
    this.#wakeConsumer?.()
    this.#wakeProducer?.()
  }
}
