import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Jobs, one queue for each agent, and what jobs said. */
export const jobs: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createJobs(db)
    await createJobQueues(db)
    await createJobLogs(db)
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['job_logs', 'job_queues', 'jobs']) await db.schema.dropTable(table).execute()
  },
}

const TEXTS = ['agent', 'actor', 'state', 'labels', 'argv', 'template', 'sha256', 'fingerprint'] as const
const TEXTS_OR_NULL = [
  'spec',
  'language',
  'idempotency_key',
  'node',
  'sandbox',
  'command',
  'cancel_by',
  'signal',
  'cause',
  'error',
  'resource_usage',
  'provenance',
  'end_node',
] as const
const NUMBERS = [
  'timeout_ms',
  'queue_ms',
  'queue_ends_at',
  'retries',
  'retry_delay_ms',
  'tries',
  'not_before',
  'log_bytes',
  'log_start',
  'created_at',
] as const
const NUMBERS_OR_NULL = ['lease_until', 'cancel_at', 'exit_code', 'started_at', 'ended_at'] as const
const FLAGS = ['has_result', 'truncated', 'recorded'] as const

async function createJobs(db: Kysely<unknown>): Promise<void> {
  let table = db.schema
    .createTable('jobs')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
  for (const name of TEXTS) table = table.addColumn(name, 'text', (column) => column.notNull())
  for (const name of TEXTS_OR_NULL) table = table.addColumn(name, 'text')
  for (const name of NUMBERS) table = table.addColumn(name, 'bigint', (column) => column.notNull())
  for (const name of NUMBERS_OR_NULL) table = table.addColumn(name, 'bigint')
  for (const name of FLAGS) table = table.addColumn(name, 'bigint', (column) => column.notNull().defaultTo(0))
  await table.execute()
  const index = async (name: string, columns: readonly string[]) =>
    db.schema
      .createIndex(name)
      .on('jobs')
      .columns([...columns])
      .execute()
  // The next job of a queue, and how many run: neither reads what waits behind it.
  await index('jobs_of_queue', ['state', 'tenant', 'agent', 'not_before', 'id'])
  await index('jobs_of_tenant', ['tenant', 'id'])
  await index('jobs_by_queue_end', ['state', 'queue_ends_at'])
  await index('jobs_by_end', ['ended_at'])
  await index('jobs_owed', ['recorded', 'end_node'])
  await db.schema
    .createIndex('jobs_by_key')
    .unique()
    .on('jobs')
    .columns(['tenant', 'agent', 'idempotency_key'])
    .execute()
}

async function createJobQueues(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('job_queues')
    .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('queued', 'bigint', (column) => column.notNull())
    .addColumn('claimed', 'bigint', (column) => column.notNull())
    .addColumn('blocked_until', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('job_queues_key', ['tenant', 'agent'])
    .execute()
}

async function createJobLogs(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('job_logs')
    .addColumn('job', 'text', (column) => column.notNull().references('jobs.id').onDelete('cascade'))
    .addColumn('start', 'bigint', (column) => column.notNull())
    .addColumn('attempt', 'bigint', (column) => column.notNull())
    .addColumn('stream', 'text', (column) => column.notNull())
    .addColumn('base64', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('job_logs_key', ['job', 'start'])
    .execute()
}
