import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What sandboxes used, and what they were beyond. */
export const metrics: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createDetails(db)
    await createPoints(db)
    await createAlerts(db)
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['alerts', 'metric_points', 'metric_details']) await db.schema.dropTable(table).execute()
  },
}

async function createDetails(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('metric_details')
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('points', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('metric_details_pk', ['subject', 'at'])
    .execute()
  await db.schema.createIndex('metric_details_by_age').on('metric_details').columns(['at']).execute()
}

async function createPoints(db: Kysely<unknown>): Promise<void> {
  let table = db.schema
    .createTable('metric_points')
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('resolution_ms', 'bigint', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('samples', 'bigint', (column) => column.notNull())
    .addColumn('counted_ms', 'bigint', (column) => column.notNull())
  for (const column of SUMS) table = table.addColumn(column, 'bigint')
  await table.addPrimaryKeyConstraint('metric_points_pk', ['subject', 'resolution_ms', 'at']).execute()
  await db.schema.createIndex('metric_points_by_age').on('metric_points').columns(['resolution_ms', 'at']).execute()
}

/** Null is what nobody could tell. */
const SUMS = [
  'cpu_ms',
  'cpu_max',
  'memory_sum',
  'memory_max',
  'pids_sum',
  'pids_max',
  'disk_sum',
  'throttled_ms',
  'read_bytes',
  'written_bytes',
  'oom_kills',
] as const

async function createAlerts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('alerts')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('sandbox', 'text', (column) => column.notNull().references('sandboxes.id'))
    .addColumn('resource', 'text', (column) => column.notNull())
    .addColumn('level', 'text', (column) => column.notNull())
    .addColumn('permille', 'bigint', (column) => column.notNull())
    .addColumn('threshold', 'bigint', (column) => column.notNull())
    .addColumn('raised_at', 'bigint', (column) => column.notNull())
    .addColumn('cleared_at', 'bigint')
    .execute()
  await db.schema.createIndex('alerts_of_sandbox').on('alerts').columns(['sandbox']).execute()
  await db.schema.createIndex('alerts_of_agent').on('alerts').columns(['tenant', 'agent', 'raised_at']).execute()
  await db.schema.createIndex('alerts_by_end').on('alerts').columns(['cleared_at']).execute()
}
