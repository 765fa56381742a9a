import type { DoorsChange } from '@airlock/contract'

/** `cut`: connections to hosts, and calls of models, that are not allowed any more. */
export type DoorsNews =
  | DoorsChange
  | { readonly what: 'cut'; readonly sandbox: string; readonly connections: readonly string[] }

type Listener = (news: DoorsNews) => void

/** Tells the doors what no longer holds, in the moment in which it happens here. Nothing depends on it: each use asks anew. */
export class DoorNews {
  readonly #listeners = new Set<Listener>()

  publish(news: DoorsNews): void {
    for (const listener of this.#listeners) listener(news)
  }

  /** Answers how to end it. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
