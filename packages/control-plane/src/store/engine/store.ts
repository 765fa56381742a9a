import { AirlockError } from '@airlock/contract'
import { type Clock, sleep } from '@airlock/std'
import { statSync } from 'node:fs'
import { CamelCasePlugin, type Expression, Kysely, sql } from 'kysely'
import { type Commits, onceCommitted } from './commits.ts'
import type { StoreFault } from './fault.ts'
import { migrate } from './migrate.ts'
import { openPostgres } from './postgres.ts'
import type { RawAnswer, RunNow } from './run-now.ts'
import type { Tables } from './schema.ts'
import { isDamage, openSqlite } from './sqlite.ts'

/** What one query or transaction works with; `runNow` is for `rawQuery`, and no transaction has it. */
export type Queries = Kysely<Tables> & { readonly runNow?: RunNow }

/** A file of this node alone, or a PostgreSQL that several nodes may share. The URL may hold a password. */
export type StorePlace =
  | {
      readonly file: string
      /** The node ran before, so an empty file has lost everything. */
      readonly hasRun?: boolean
    }
  | { readonly url: string }

const BUSY_PAUSE_MS = 50
/** No further try begins after this. */
const BUSY_MS = 5_000

interface StoreOptions {
  readonly isShared: boolean
  readonly faultOf: (error: unknown) => StoreFault
  /** Where the answer to a commit can be lost on its way; a file answers in this process. */
  readonly commits?: Commits
  /** The clock of a database that has one of its own, in ms since the epoch. */
  readonly time?: Expression<number>
  /** Of a file of this node alone; a PostgreSQL decides by itself. */
  readonly setDurable?: (isDurable: boolean) => void
  /** Runs a statement at once; who asks sees to it that nobody holds the connection. */
  readonly runNow?: (...of: [...Parameters<RunNow>, isDurable: boolean]) => RawAnswer
}

/**
 * The rows of the control plane; no other process opens it. Work that finds the database locked or its connection broken
 * is tried again here, and nowhere else, for a few seconds: so a callback may run more than once, and must do nothing but
 * queries. A transaction is committed at most once: when only the answer to its commit was lost, the result of that try is
 * answered. Outside of a transaction a write may happen twice, and doing that must do no harm.
 */
export class Store {
  /** Whether control planes of other nodes may use it too. */
  readonly isShared: boolean
  readonly #db: Queries
  readonly #quickDb: Queries
  readonly #faultOf: (error: unknown) => StoreFault
  readonly #commits: Commits | undefined
  readonly #setDurable: ((isDurable: boolean) => void) | undefined
  readonly #time: Expression<number> | undefined
  /** Who holds the connection, or waits for it, for more than one statement. */
  #held = 0

  constructor(db: Kysely<Tables>, options: StoreOptions) {
    this.#db = this.#withNow(db, options, true)
    this.#quickDb = this.#withNow(db, options, false)
    this.isShared = options.isShared
    this.#faultOf = options.faultOf
    this.#commits = options.commits
    this.#setDurable = options.setDurable
    this.#time = options.time
  }

  async query<T>(work: (db: Queries) => Promise<T>): Promise<T> {
    return this.#patiently(() => work(this.#db))
  }

  /** All or nothing, and durable once it resolves. Transactions run one after another. */
  async transaction<T>(work: (db: Queries) => Promise<T>): Promise<T> {
    const once = this.#commits ? onceCommitted(work, this.#commits) : work
    return this.#patiently(() => this.#hold(() => this.#db.transaction().execute(once)))
  }

  /**
   * For one write, and reads before it that nothing comes between: it survives the death of this process, and need not
   * survive that of the host. For what the host takes along anyway.
   */
  async quick<T>(work: (db: Queries) => Promise<T>): Promise<T> {
    const setDurable = this.#setDurable
    if (!setDurable) return this.transaction(work)
    return this.#patiently(() =>
      this.#hold(() =>
        this.#db.connection().execute(async (db) => {
          setDurable(false)
          try {
            return await work(db)
          } finally {
            setDurable(true)
          }
        }),
      ),
    )
  }

  /** The same for who needs no more than one statement of `rawQuery`. */
  async quickly<T>(work: (db: Queries) => Promise<T>): Promise<T> {
    return this.isShared ? this.transaction(work) : this.#patiently(() => work(this.#quickDb))
  }

  /**
   * Now, for queries about rows that other nodes wrote: by the clock of the store that they share, for those of nodes may differ. A file
   * has one node, whose clock counts.
   */
  now(clock: Clock): Expression<number> {
    return this.#time ?? sql<number>`${clock.now()}`
  }

  /** A unique index refused the row. */
  isTaken(error: unknown): boolean {
    return this.#faultOf(error) === 'taken'
  }

  /** The row that another rests on is not there. */
  isMissing(error: unknown): boolean {
    return this.#faultOf(error) === 'missing'
  }

  async close(): Promise<void> {
    await this.#db.destroy()
  }

  /** A view of its own on the same connection. */
  #withNow(db: Kysely<Tables>, { runNow }: StoreOptions, isDurable: boolean): Queries {
    const own = db.$extendTables<Pick<Tables, 'tenants'>>()
    if (!runNow) return own
    const ours: RunNow = (text, parameters) => (this.#held === 0 ? runNow(text, parameters, isDurable) : undefined)
    return Object.assign(own, { runNow: ours })
  }

  async #hold<T>(work: () => Promise<T>): Promise<T> {
    this.#held++
    try {
      return await work()
    } finally {
      this.#held--
    }
  }

  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    const until = performance.now() + BUSY_MS
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const fault = this.#faultOf(error)
        const isOver = performance.now() >= until
        if (fault === 'full' || fault === 'closed' || (fault === 'busy' && isOver))
          throw new AirlockError('store_unavailable', undefined, { cause: error })
        if (fault !== 'busy') throw error
        await sleep(BUSY_PAUSE_MS)
      }
    }
  }
}

/** Opens the store, making what is not there yet, and brings its schema up to date. Fails closed on a damaged file. */
export async function openStore(place: StorePlace): Promise<Store> {
  if (!('file' in place)) return openShared(place.url)
  const { file, hasRun = false } = place
  if (hasRun && statSync(file, { throwIfNoEntry: false })?.size === 0) throw damaged(file, 'it is empty')
  try {
    return await openFile(file)
  } catch (error) {
    const cause = error instanceof Error && isDamage(error.cause) ? error.cause : error
    throw isDamage(cause) ? damaged(file, cause.message, cause) : error
  }
}

function damaged(path: string, what: string, cause?: unknown): AirlockError {
  const hint = 'Put it back from a backup (docs/backup.md), or remove it to begin without tenants, keys and sandboxes.'
  return new AirlockError('state_damaged', `${path} is damaged: ${what}.`, { cause, hint })
}

async function openFile(path: string): Promise<Store> {
  const { dialect, ...options } = openSqlite(path)
  const db = new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] })
  await migrate(db, 'latest')
  return new Store(db, { isShared: false, ...options })
}

async function openShared(url: string): Promise<Store> {
  const { dialect, ...options } = openPostgres(url, 'queries')
  await migrateShared(url)
  return new Store(new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] }), { isShared: true, ...options })
}

/** Control planes that start at once take turns: kysely's migrator holds a lock. */
async function migrateShared(url: string): Promise<void> {
  const { dialect, faultOf } = openPostgres(url, 'migration')
  const db = new Kysely<object>({ dialect })
  try {
    await migrate(db, 'latest')
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined
    if (faultOf(cause) === 'other') throw error
    throw new AirlockError('store_unavailable', `PostgreSQL cannot be used: ${describe(cause)}.`, { cause })
  } finally {
    await db.destroy()
  }
}

function describe(cause: unknown): string {
  return cause instanceof Error && cause.message !== '' ? cause.message : 'it does not answer'
}
