import type { Clock } from '@airlock/std'
import { listGuardKeys, type StoredApiKey } from '../store/api-keys.ts'
import type { Store } from '../store/engine/store.ts'

/** More admins and operators than that do not all reach a killswitch while the store is away; those of the platform do. */
const MOST = 10_000

/**
 * The keys that may turn a killswitch on, in memory, for when the store cannot be asked. Read anew every few seconds, so a
 * key that another node revoked in the last of them is still known here; one that was revoked here is not.
 */
export class GuardKeys {
  readonly #store: Store
  readonly #clock: Clock
  #known: ReadonlyMap<string, StoredApiKey> = new Map()
  readonly #forgotten = new Set<string>()

  constructor(of: { readonly store: Store; readonly clock: Clock }) {
    this.#store = of.store
    this.#clock = of.clock
  }

  async refresh(): Promise<void> {
    const before = [...this.#forgotten]
    const rows = await this.#store.query((db) => listGuardKeys(db, { goodAt: this.#clock.now(), limit: MOST }))
    this.#known = new Map(rows.map((row) => [row.id, row]))
    // What was revoked meanwhile may be in what was read.
    for (const id of before) this.#forgotten.delete(id)
  }

  find(id: string): StoredApiKey | undefined {
    return this.#forgotten.has(id) ? undefined : this.#known.get(id)
  }

  /** It was revoked here. */
  forget(id: string): void {
    if (this.#known.has(id)) this.#forgotten.add(id)
  }
}
