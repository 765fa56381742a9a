import type { DoorsChange } from '@airlock/contract'

type Listener = (change: DoorsChange) => void

/** Tells the doors what no longer holds, in the moment in which it happens here. Nothing depends on it: each use asks anew. */
export class DoorNews {
  readonly #listeners = new Set<Listener>()

  publish(change: DoorsChange): void {
    for (const listener of this.#listeners) listener(change)
  }

  /** Answers how to end it. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
