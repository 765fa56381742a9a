import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Pauses of sandboxes, killswitches, and what each of them did. */
export const kills: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await extendSandboxes(db)
    await createKills(db)
    await createKilledSandboxes(db)
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['killed_sandboxes', 'kills']) await db.schema.dropTable(table).execute()
    for (const column of ['paused_by', 'paused_at', 'max_paused_ms', 'on_idle'])
      await db.schema.alterTable('sandboxes').dropColumn(column).execute()
  },
}

async function extendSandboxes(db: Kysely<unknown>): Promise<void> {
  const sandboxes = () => db.schema.alterTable('sandboxes')
  await sandboxes()
    .addColumn('on_idle', 'text', (column) => column.notNull().defaultTo('terminate'))
    .execute()
  await sandboxes()
    .addColumn('max_paused_ms', 'bigint', (column) => column.notNull().defaultTo(86_400_000))
    .execute()
  await sandboxes().addColumn('paused_at', 'bigint').execute()
  await sandboxes().addColumn('paused_by', 'text').execute()
}

async function createKills(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('kills')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('scope', 'text', (column) => column.notNull())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('target', 'text', (column) => column.notNull())
    .addColumn('reason', 'text', (column) => column.notNull())
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('lifted_at', 'bigint')
    .addColumn('lifted_by', 'text')
    .execute()
  await db.schema
    .createIndex('kills_on')
    .unique()
    .on('kills')
    .columns(['scope', 'tenant', 'target'])
    .where(sql.ref('lifted_at'), 'is', null)
    .execute()
  await db.schema.createIndex('kills_of_tenant').on('kills').columns(['tenant', 'id']).execute()
}

async function createKilledSandboxes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('killed_sandboxes')
    .addColumn('kill', 'text', (column) => column.notNull().references('kills.id'))
    .addColumn('sandbox', 'text', (column) => column.notNull())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('node', 'text', (column) => column.notNull())
    .addColumn('frozen_ms', 'bigint')
    .addColumn('gone_ms', 'bigint')
    .addColumn('processes', 'bigint')
    .addColumn('verified', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('killed_sandboxes_pk', ['kill', 'sandbox'])
    .execute()
}
