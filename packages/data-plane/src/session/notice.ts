/** Wakes whoever waits for a change. A waiter looks at the state itself, before and after. */
export class Notice {
  readonly #waiters = new Set<() => void>()

  notify(): void {
    for (const wake of this.#waiters) wake()
  }

  /** Resolves at the next `notify`; rejects with the signal's reason when aborted. */
  async wait(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const done = () => {
        this.#waiters.delete(done)
        signal?.removeEventListener('abort', done)
        if (signal?.aborted) reject(signal.reason)
        else resolve()
      }
      this.#waiters.add(done)
      signal?.addEventListener('abort', done)
    })
  }
}
