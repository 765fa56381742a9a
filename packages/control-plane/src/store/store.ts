import { AirlockError } from '@airlock/contract'
import { sleep } from '@airlock/std'
import { CamelCasePlugin, Kysely } from 'kysely'
import type { StoreFault } from './fault.ts'
import { migrate } from './migrate.ts'
import type { Tables } from './schema.ts'
import { openSqlite } from './sqlite.ts'

/** What one query or transaction works with. */
export type Queries = Kysely<Tables>

const BUSY_TRIES = 40
const BUSY_PAUSE_MS = 50

/**
 * The rows of the control plane; no other process opens it. Work that finds the database locked is tried again here, and
 * nowhere else, for about two seconds: so a callback may run more than once and must do nothing but queries.
 */
export class Store {
  readonly #db: Kysely<Tables>
  readonly #faultOf: (error: unknown) => StoreFault

  constructor(db: Kysely<Tables>, faultOf: (error: unknown) => StoreFault) {
    this.#db = db
    this.#faultOf = faultOf
  }

  async query<T>(work: (db: Queries) => Promise<T>): Promise<T> {
    return this.#patiently(() => work(this.#db))
  }

  /** All or nothing, and durable once it resolves. Transactions run one after another. */
  async transaction<T>(work: (db: Queries) => Promise<T>): Promise<T> {
    return this.#patiently(() => this.#db.transaction().execute(work))
  }

  /** A unique index refused the row. */
  isTaken(error: unknown): boolean {
    return this.#faultOf(error) === 'taken'
  }

  async close(): Promise<void> {
    await this.#db.destroy()
  }

  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        const fault = this.#faultOf(error)
        if (fault === 'full') throw new AirlockError('store_unavailable', undefined, { cause: error })
        if (fault !== 'busy' || attempt >= BUSY_TRIES) throw error
        await sleep(BUSY_PAUSE_MS)
      }
    }
  }
}

/** Opens the file, making it when there is none, and brings its schema up to date. */
export async function openStore(path: string): Promise<Store> {
  const { dialect, faultOf } = openSqlite(path)
  const db = new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] })
  await migrate(db, 'latest')
  return new Store(db, faultOf)
}
