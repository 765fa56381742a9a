import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { memoryDir } from '../../../../../test/support/memory-dir.ts'
import { TestPostgres } from '../../../../../test/support/postgres.ts'
import { requires } from '../../../../../test/support/requires.ts'
import type { StorePlace } from '../engine/store.ts'

// oxlint-disable-next-line node/no-process-env -- said by the project that runs the tests
const { TEST_DIALECTS } = process.env

/** Makes empty stores of one dialect, as many as a file of tests wants. */
export interface TestStores {
  make(): Promise<StorePlace>
  /** Runs SQL beside the store. Answers the first column of each row. */
  run(place: StorePlace, sql: string): Promise<readonly unknown[]>
  tables(place: StorePlace): Promise<readonly unknown[]>
  /** Refuses every change of a sandbox, and new kills, from now on: that is what a full disk looks like. Answers how to end that. */
  fill(place: StorePlace): Promise<() => Promise<unknown>>
  /** Ends what runs for them and removes them all. */
  stop(): Promise<void>
}

interface TestDialect {
  readonly name: string
  /** For `describe`: skips, with the reason, where it cannot run. */
  readonly options: ReturnType<typeof requires>
  start(): Promise<TestStores>
}

/** What holds on one holds on the other: `for (const dialect of ALL_DIALECTS) describe(dialect.name, dialect.options, …)`. */
export const ALL_DIALECTS: readonly TestDialect[] = [
  { name: 'SQLite', options: {}, start: async () => new SqliteStores() },
  {
    name: 'PostgreSQL',
    options: requires('postgres'),
    start: async () => new PostgresStores(await TestPostgres.shared()),
  },
]

/** For what is not about the store itself: a project of `vitest.config.ts` runs it on one of them, another on the other. */
export const DIALECTS = ALL_DIALECTS.filter(({ name }) => (TEST_DIALECTS ?? name).includes(name))

class SqliteStores implements TestStores {
  readonly #dir = mkdtempSync(join(memoryDir(), 'airlock-stores-'))
  #made = 0

  async make(): Promise<StorePlace> {
    return { file: join(this.#dir, `${++this.#made}.db`) }
  }

  async run(place: StorePlace, sql: string): Promise<readonly unknown[]> {
    if (!('file' in place)) throw new TypeError('not a file')
    const database = new DatabaseSync(place.file)
    try {
      return database
        .prepare(sql)
        .all()
        .map((row) => Object.values(row)[0])
    } finally {
      database.close()
    }
  }

  async tables(place: StorePlace): Promise<readonly unknown[]> {
    const tables = "select name from sqlite_master where type = 'table' and name not like 'kysely%' order by name"
    return this.run(place, tables)
  }

  async fill(place: StorePlace): Promise<() => Promise<unknown>> {
    const full = `begin select raise(abort, 'disk full'); end`
    await this.run(place, `create trigger full before update on sandboxes ${full}`)
    await this.run(place, `create trigger full_kills before insert on kills ${full}`)
    return async () => {
      await this.run(place, 'drop trigger full')
      await this.run(place, 'drop trigger full_kills')
    }
  }

  async stop(): Promise<void> {
    rmSync(this.#dir, { recursive: true, force: true })
  }
}

type SharedPostgres = Awaited<ReturnType<typeof TestPostgres.shared>>

class PostgresStores implements TestStores {
  readonly #postgres: SharedPostgres

  constructor(postgres: SharedPostgres) {
    this.#postgres = postgres
  }

  async make(): Promise<StorePlace> {
    return { url: await this.#postgres.createDatabase() }
  }

  async run(place: StorePlace, sql: string): Promise<readonly unknown[]> {
    if (!('url' in place)) throw new TypeError('not a URL')
    return this.#postgres.ask(place.url, sql)
  }

  async tables(place: StorePlace): Promise<readonly unknown[]> {
    const own = "table_schema = 'public' and table_name not like 'kysely%'"
    return this.run(place, `select table_name from information_schema.tables where ${own} order by 1`)
  }

  async fill(place: StorePlace): Promise<() => Promise<unknown>> {
    const raise = `begin raise exception 'disk full' using errcode = '53100'; end`
    await this.run(place, `create function full_disk() returns trigger language plpgsql as $$ ${raise} $$`)
    for (const when of ['update on sandboxes', 'insert on kills'])
      await this.run(place, `create trigger full_disk before ${when} for each row execute function full_disk()`)
    return async () => this.run(place, 'drop function full_disk() cascade')
  }

  async stop(): Promise<void> {
    await this.#postgres.dropDatabases()
  }
}
