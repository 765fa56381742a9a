import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Expression,
  PostgresDialect,
  type PostgresDialectConfig,
  PostgresDriver,
  sql,
  type TransactionSettings,
} from 'kysely'
import pg from 'pg'
import type { Commits } from './commits.ts'
import type { StoreFault } from './fault.ts'

const MAX_CONNECTIONS = 10
const CONNECT_MS = 3_000
const STATEMENT_MS = 10_000
const LOCK_MS = 5_000
const MIGRATION_MS = 10 * 60_000
const IDLE_MS = 30_000
/** Any number will do, as long as nothing else in this database uses it. */
const TRANSACTION_LOCK = 4_711_070_701

interface OpenedPostgres {
  readonly dialect: Dialect
  readonly faultOf: (error: unknown) => StoreFault
  readonly commits: Commits
  readonly time: Expression<number>
}

/** Not when the transaction began: others may have been waited for. */
const TIME = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/**
 * PostgreSQL as kysely wants it. This file is the only one that knows it is PostgreSQL.
 *
 * The URL holds a password: it stays in here, and nothing that we throw repeats it. `work` is `migration` for the
 * connection that changes the schema, which may take its time.
 */
export function openPostgres(url: string, work: 'queries' | 'migration'): OpenedPostgres {
  const waits = work === 'queries' ? { statement: STATEMENT_MS, lock: LOCK_MS } : { statement: MIGRATION_MS, lock: 0 }
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'airlock',
    max: work === 'queries' ? MAX_CONNECTIONS : 1,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    statement_timeout: waits.statement,
    lock_timeout: waits.lock,
    // A little later than the server's own: for a server that went away without a word.
    query_timeout: waits.statement + 2_000,
    idle_in_transaction_session_timeout: waits.statement,
    types: { getTypeParser },
  })
  // A connection that breaks is dropped by the pool; whoever uses it gets the error as the answer to a query.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return { dialect: new OneAtATime({ pool }), faultOf, commits: COMMITS, time: TIME }
}

/** PostgreSQL numbers every transaction that writes, and remembers for long what became of it. */
const COMMITS: Commits = {
  async idOf(db) {
    const { rows } = await sql<{ id: string | null }>`select pg_current_xact_id_if_assigned()::text as id`.execute(db)
    return rows[0]?.id ?? null
  },
  async has(db, id) {
    const { rows } = await sql<{ status: string | null }>`select pg_xact_status(${id}::xid8) as status`.execute(db)
    return rows[0]?.status === 'committed'
  },
}

/**
 * Transactions run one after another, over all control planes of one database, as they do in SQLite: what one of them
 * decides never rests on a row that another is changing. They are short, and none waits for anything but queries.
 */
class OneAtATime extends PostgresDialect {
  readonly #config: PostgresDialectConfig

  constructor(config: PostgresDialectConfig) {
    super(config)
    this.#config = config
  }

  override createDriver(): Driver {
    return new OneAtATimeDriver(this.#config)
  }
}

class OneAtATimeDriver extends PostgresDriver {
  override async beginTransaction(connection: DatabaseConnection, _settings: TransactionSettings): Promise<void> {
    try {
      await connection.executeQuery(CompiledQuery.raw(`begin; select pg_advisory_xact_lock(${TRANSACTION_LOCK})`))
    } catch (error) {
      // Begun, but without the lock. The first error counts; the pool drops a connection that cannot even go back.
      await connection.executeQuery(CompiledQuery.raw('rollback')).catch(() => undefined)
      throw error
    }
  }
}

/** Whole numbers come as numbers; what no number holds exactly is refused by the schema of the row. */
const INT8 = 20

function getTypeParser(oid: number, format?: 'text' | 'binary'): (text: string) => unknown {
  // oxlint-disable-next-line typescript/no-unsafe-return -- what a column becomes is for the schema of its row to say
  return oid === INT8 ? Number : pg.types.getTypeParser(oid, format === 'binary' ? 'binary' : 'text')
}

/** By SQLSTATE, by class of SQLSTATE (its first two characters), or by the code of a socket. */
const CODES: Readonly<Record<Exclude<StoreFault, 'other'>, readonly string[]>> = {
  taken: ['23505'],
  // Of a column that a query fills.
  missing: ['23502'],
  // A disk, and a server that may only be read.
  full: ['53100', '25006'],
  // Connections; then serialization, deadlock, lock, shutdown, crash, start, too many connections.
  busy: '08 ECONNRESET ECONNREFUSED EPIPE ETIMEDOUT EAI_AGAIN 40001 40P01 55P03 57P01 57P02 57P03 53300'.split(' '),
  // Authorization, a database that is not there, a host that is not there.
  closed: ['28', '3D', 'ENOTFOUND', 'ENOENT', 'EACCES', 'EHOSTUNREACH', 'ENETUNREACH'],
}
/** What the driver itself says of a connection, for want of a code. */
const BROKEN = /^Connection terminated|not queryable|timeout exceeded when trying to connect|^Query read timeout/

function faultOf(error: unknown): StoreFault {
  if (!(error instanceof Error)) return 'other'
  if (!('code' in error) || typeof error.code !== 'string') return BROKEN.test(error.message) ? 'busy' : 'other'
  const { code } = error
  const faults = ['taken', 'missing', 'full', 'busy', 'closed'] as const
  return faults.find((fault) => CODES[fault].includes(code) || CODES[fault].includes(code.slice(0, 2))) ?? 'other'
}
