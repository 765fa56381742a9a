import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { type Dialect, SqliteDialect, type SqliteDatabase, type SqliteStatement } from 'kysely'
import type { StoreFault } from './fault.ts'
import type { Parameter, RawAnswer } from './run-now.ts'

/**
 * SQLite as kysely's driver wants it. This file is the only one that knows it is SQLite.
 *
 * Durable on commit (WAL with synchronous FULL). Waiting for a lock blocks our whole loop, so SQLite waits only
 * shortly and the store tries again without blocking.
 */
export function openSqlite(path: string): {
  readonly dialect: Dialect
  readonly faultOf: (error: unknown) => StoreFault
  /** Whether a commit waits for the disk. Only who holds the connection may change it. */
  readonly setDurable: (isDurable: boolean) => void
  /** Past kysely; only while nobody holds the connection. */
  readonly runNow: (text: string, parameters: readonly Parameter[], isDurable: boolean) => RawAnswer
} {
  const database = new DatabaseSync(path)
  for (const pragma of PRAGMAS) database.exec(pragma)
  const durability = new Durability(database)
  const setDurable = (isDurable: boolean) => {
    durability.isWanted = isDurable
  }
  const dialect = new SqliteDialect({ database: adapt(database, durability) })
  return { dialect, faultOf, setDurable, runNow: runnerOf(database, durability) }
}

const PRAGMAS = [
  'PRAGMA busy_timeout = 50',
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA foreign_keys = ON',
] as const

/** Whether commits wait for the disk. To change that is a statement of its own: it is changed when the next write needs it. */
class Durability {
  isWanted = true
  readonly #database: DatabaseSync
  #is = true

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** Within a transaction it stays what it was at its beginning. */
  apply(): void {
    if (this.#is === this.isWanted || this.#database.isTransaction) return
    this.#database.exec(`PRAGMA synchronous = ${this.isWanted ? 'FULL' : 'NORMAL'}`)
    this.#is = this.isWanted
  }
}

/** Our queries are few; only those with lists of ids come in many lengths. */
const MAX_STATEMENTS = 256
/** Rows that are remembered, of one statement. */
const MAX_ANSWERS = 1024

/** Preparing a statement costs more than running it, so each is kept. None is read in pieces, so each is free again. */
function adapt(database: DatabaseSync, durability: Durability): SqliteDatabase {
  const statements = new Map<string, SqliteStatement>()
  return {
    close: () => database.close(),
    prepare(sql) {
      // SQLite undoes a transaction by itself on some errors, a full disk among them: then nothing is left to roll back.
      if (sql === 'rollback' && !database.isTransaction) return NOTHING
      const known = statements.get(sql)
      if (known) return known
      // A deferred transaction that reads first and writes later fails when another writer came between.
      const text = sql === 'begin' ? 'begin immediate' : numbered(sql)
      const statement = adaptStatement(database.prepare(text), READS.test(text) ? () => {} : () => durability.apply())
      const [oldest] = statements.keys()
      if (statements.size >= MAX_STATEMENTS && oldest !== undefined) statements.delete(oldest)
      statements.set(sql, statement)
      return statement
    },
  }
}

interface Now {
  readonly statement: StatementSync
  /** What one that is asked by an id said last. */
  readonly answers: Map<Parameter, Answered>
  /** As the rest of the program names them. */
  readonly columns: readonly string[]
  readonly isRead: boolean
}

interface Answered {
  readonly values: readonly unknown[]
  readonly row: Readonly<Record<string, unknown>>
}

/** Of statements that are written down: there are a handful. */
function runnerOf(database: DatabaseSync, durability: Durability): ReturnType<typeof openSqlite>['runNow'] {
  const known = new Map<string, Now>()
  const prepare = (sql: string): Now => {
    const statement = database.prepare(numbered(sql))
    statement.setReturnArrays(true)
    const columns = statement.columns().map(({ name }) => camelCase(name))
    const now = { statement, columns, isRead: READS.test(sql), answers: new Map() }
    known.set(sql, now)
    return now
  }
  return (sql, parameters, isDurable) => {
    const now = known.get(sql) ?? prepare(sql)
    const { statement } = now
    if (now.isRead)
      return { rows: statement.all(...parameters).map((values) => rowOf(now, parameters, values)), changes: 0 }
    durability.isWanted = isDurable
    durability.apply()
    durability.isWanted = true
    return { rows: [], changes: Number(statement.run(...parameters).changes) }
  }
}

/** The same object as last time when nothing in it changed: to make it costs more than to read it, and so does to compare it. */
function rowOf(
  { answers, columns }: Now,
  parameters: readonly Parameter[],
  values: unknown,
): Readonly<Record<string, unknown>> {
  if (!Array.isArray(values)) throw new TypeError('a row is no list of values')
  const [id] = parameters
  if (parameters.length !== 1 || id === undefined) return toRow(columns, values)
  const before = answers.get(id)
  if (before && values.every((value, at) => value === before.values[at])) return before.row
  const row = toRow(columns, values)
  const [oldest] = answers.keys()
  if (answers.size >= MAX_ANSWERS && !before && oldest !== undefined) answers.delete(oldest)
  answers.set(id, { values, row })
  return row
}

function toRow(columns: readonly string[], values: readonly unknown[]): Readonly<Record<string, unknown>> {
  const row: Record<string, unknown> = {}
  for (const [at, name] of columns.entries()) row[name] = values[at]
  return row
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function numbered(sql: string): string {
  return sql.replaceAll(/\$(\d+)/g, '?$1')
}

const NOTHING: SqliteStatement = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [].values(),
}

const READS = /^select /i

function adaptStatement(statement: StatementSync, before: () => void): SqliteStatement {
  const ready = (parameters: readonly unknown[]): SQLInputValue[] => {
    before()
    return parameters.map(parseInput)
  }
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...ready(parameters)),
    run: (parameters) => statement.run(...ready(parameters)),
    iterate: (parameters) => statement.iterate(...ready(parameters)),
  }
}

function parseInput(value: unknown): SQLInputValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
    return value
  throw new TypeError(`a ${typeof value} cannot be stored`)
}

/** The file is no database any more, or lacks parts of one. */
export function isDamage(error: unknown): error is Error {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false
  const primary = error.errcode & 0xff
  return primary === CORRUPT || primary === NOT_A_DATABASE
}

const BUSY = 5
const LOCKED = 6
const CORRUPT = 11
const FULL = 13
const NOT_A_DATABASE = 26
const CONSTRAINT_PRIMARY_KEY = 1555
const CONSTRAINT_UNIQUE = 2067
const CONSTRAINT_NOT_NULL = 1299

function faultOf(error: unknown): StoreFault {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return 'other'
  if (error.errcode === CONSTRAINT_UNIQUE || error.errcode === CONSTRAINT_PRIMARY_KEY) return 'taken'
  if (error.errcode === CONSTRAINT_NOT_NULL) return 'missing'
  const primary = error.errcode & 0xff
  if (primary === BUSY || primary === LOCKED) return 'busy'
  return primary === FULL ? 'full' : 'other'
}
