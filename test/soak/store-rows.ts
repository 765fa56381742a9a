import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** Rows that say that something lives or is owed. When everything has ended, and its evidence is written, there are none. */
const OPEN_ROWS = {
  'sandboxes that have not ended': `SELECT count(*) AS n FROM sandboxes WHERE state NOT IN ('stopped', 'error')`,
  'sessions that have not ended': `SELECT count(*) AS n FROM sessions WHERE state = 'active'`,
  'commands that run': `SELECT count(*) AS n FROM commands WHERE state = 'running'`,
  'steps that run': `SELECT count(*) AS n FROM steps WHERE status NOT IN ('completed', 'failed')`,
  'jobs that have not ended': `SELECT count(*) AS n FROM jobs WHERE state IN ('queued', 'running')`,
  'reservations in budgets': 'SELECT count(*) AS n FROM reservations',
  'ends that are not recorded': `SELECT
    (SELECT count(*) FROM sandboxes WHERE recorded = 0 AND state IN ('stopped', 'error')) +
    (SELECT count(*) FROM sessions WHERE recorded = 0 AND state <> 'active') +
    (SELECT count(*) FROM commands WHERE recorded = 0 AND state IN ('exited', 'lost')) +
    (SELECT count(*) FROM jobs WHERE recorded = 0 AND ended_at IS NOT NULL) +
    (SELECT count(*) FROM steps WHERE recorded = 0 AND status IN ('completed', 'failed')) AS n`,
  'model calls under way': 'SELECT count(*) AS n FROM model_calls',
  'model calls that are not recorded': 'SELECT count(*) AS n FROM model_call_ends',
  'killswitches that are on': 'SELECT count(*) AS n FROM kills WHERE lifted_at IS NULL',
  'killed sandboxes that are not verified': 'SELECT count(*) AS n FROM killed_sandboxes WHERE verified = 0',
} as const

/** Reads the store of a server beside it. */
export function countOpenRows(home: string): Readonly<Record<string, number>> {
  const store = new DatabaseSync(join(home, 'control-plane/airlock.db'), { readOnly: true })
  try {
    return Object.fromEntries(Object.entries(OPEN_ROWS).map(([what, query]) => [what, countOf(store, query)]))
  } finally {
    store.close()
  }
}

function countOf(store: DatabaseSync, query: string): number {
  const row = store.prepare(query).get()
  return Number(row?.['n'] ?? Number.NaN)
}
