import type { Queries, Store } from './store.ts'

/** More than this many names between two writes are forgotten: they count as not seen. */
const MOST = 50_000
const BATCH = 500

/**
 * When something was last seen, by name: kept in memory and written in batches, so that a call does not cost a write.
 * What could not be written is kept for the next time, unless it was seen again meanwhile.
 */
export class LatestTimes {
  readonly #store: Store
  readonly #write: (db: Queries, name: string, at: number) => Promise<void>
  #times = new Map<string, number>()

  constructor(store: Store, write: (db: Queries, name: string, at: number) => Promise<void>) {
    this.#store = store
    this.#write = write
  }

  see(name: string, at: number): void {
    const known = this.#times.get(name)
    if (known === undefined && this.#times.size >= MOST) return
    if (known === undefined || known < at) this.#times.set(name, at)
  }

  /** What is not written yet. */
  get(name: string): number | undefined {
    return this.#times.get(name)
  }

  /** Each batch is written whole or not at all. */
  async flush(): Promise<void> {
    const seen = [...this.#times]
    this.#times = new Map()
    for (let from = 0; from < seen.length; from += BATCH) {
      const batch = seen.slice(from, from + BATCH)
      try {
        await this.#store.transaction(async (db) => {
          for (const [name, at] of batch) await this.#write(db, name, at)
        })
      } catch (error) {
        for (const [name, at] of seen.slice(from)) this.see(name, at)
        throw error
      }
    }
  }
}
