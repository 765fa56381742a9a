import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What people were asked and answered, and whom to tell. */
export const approvals: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createApprovals(db)
    await createWebhooks(db)
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['webhooks', 'approvals']) await db.schema.dropTable(table).execute()
  },
}

async function createApprovals(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('approvals')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('requester', 'text', (column) => column.notNull())
    .addColumn('agent', 'text')
    .addColumn('sandbox', 'text')
    .addColumn('point', 'text', (column) => column.notNull())
    .addColumn('summary', 'text', (column) => column.notNull())
    .addColumn('question', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull())
    .addColumn('wide_hash', 'text', (column) => column.notNull())
    .addColumn('decision', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('scope', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('changed_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('answered_by', 'text')
    .addColumn('answered_at', 'bigint')
    .addColumn('note', 'text')
    .addColumn('used_at', 'bigint')
    .addColumn('used_by', 'text')
    .execute()
  await sql`create unique index approvals_pending on approvals (tenant, hash) where state = 'pending'`.execute(db)
  await db.schema.createIndex('approvals_by_hash').on('approvals').columns(['tenant', 'hash']).execute()
  await db.schema.createIndex('approvals_by_wide_hash').on('approvals').columns(['tenant', 'wide_hash']).execute()
  await db.schema.createIndex('approvals_by_state').on('approvals').columns(['tenant', 'state', 'id']).execute()
  await db.schema.createIndex('approvals_by_change').on('approvals').columns(['tenant', 'changed_at']).execute()
  await db.schema.createIndex('approvals_by_expiry').on('approvals').columns(['state', 'expires_at']).execute()
}

async function createWebhooks(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('webhooks')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('events', 'text', (column) => column.notNull())
    .addColumn('secret', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.notNull())
    .addColumn('last_at', 'bigint')
    .addColumn('last_error', 'text')
    .execute()
  await db.schema.createIndex('webhooks_of_tenant').on('webhooks').columns(['tenant', 'id']).execute()
}
