import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Templates and the images that sandboxes stand on; sessions and their steps. */
export const sessions: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('sandboxes').addColumn('image', 'text').execute()
    await createTemplates(db)
    await createSessions(db)
    await createSteps(db)
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['steps', 'sessions', 'templates']) await db.schema.dropTable(table).execute()
    await db.schema.alterTable('sandboxes').dropColumn('image').execute()
  },
}

async function createTemplates(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('templates')
    .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('spec', 'text', (column) => column.notNull())
    .addColumn('image', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('templates_pk', ['tenant', 'name'])
    .execute()
}

async function createSessions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sessions')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('sandbox', 'text', (column) => column.notNull().references('sandboxes.id').onDelete('cascade'))
    .addColumn('owns_sandbox', 'integer', (column) => column.notNull())
    .addColumn('runtime', 'text', (column) => column.notNull())
    .addColumn('runtime_version', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('labels', 'text', (column) => column.notNull())
    .addColumn('ttl_ms', 'bigint', (column) => column.notNull())
    .addColumn('restarts', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('last_active_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('ended_at', 'bigint')
    .addColumn('end_reason', 'text')
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('recorded', 'integer', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('sessions_of_tenant').on('sessions').columns(['tenant', 'state', 'id']).execute()
  await db.schema.createIndex('sessions_of_sandbox').on('sessions').columns(['sandbox', 'state']).execute()
}

/** The caller's own id of a step is taken once in a session: that is what makes it run at most once. */
async function createSteps(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('steps')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('sandbox', 'text', (column) => column.notNull())
    .addColumn('session', 'text', (column) => column.notNull().references('sessions.id').onDelete('cascade'))
    .addColumn('step_id', 'text', (column) => column.notNull())
    .addColumn('code_hash', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('error', 'text')
    .addColumn('restarted', 'integer', (column) => column.notNull())
    .addColumn('truncated', 'integer', (column) => column.notNull())
    .addColumn('output_bytes', 'bigint', (column) => column.notNull())
    .addColumn('max_output_bytes', 'bigint', (column) => column.notNull())
    .addColumn('usage', 'text')
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('ended_at', 'bigint')
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('recorded', 'integer', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('steps_once').unique().on('steps').columns(['session', 'step_id']).execute()
  await db.schema.createIndex('steps_of_session').on('steps').columns(['session', 'id']).execute()
  await db.schema.createIndex('steps_by_status').on('steps').columns(['status', 'recorded']).execute()
}
