import type { Kysely } from 'kysely'
import type { Tables } from './schema.ts'

type Work<T> = (db: Kysely<Tables>) => Promise<T>

/** Tells whether a transaction was committed, for whoever did not get the answer. */
export interface Commits {
  /** Names the transaction under way; null when it has written nothing so far. */
  readonly idOf: Work<string | null>
  has(db: Kysely<Tables>, id: string): Promise<boolean>
}

/** The same work for a transaction; a further try first asks whether the one before was committed. */
export function onceCommitted<T>(work: Work<T>, commits: Commits): Work<T> {
  let last: { readonly id: string; readonly result: T } | undefined
  return async (db) => {
    // Transactions run one after another, so by now the last one is over, whichever way.
    if (last && (await commits.has(db, last.id))) return last.result
    last = undefined
    const result = await work(db)
    const id = await commits.idOf(db)
    if (id !== null) last = { id, result }
    return result
  }
}
