import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Tools of tenants, their sealed secrets, and how many calls each sandbox made. */
export const tools: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createSecrets(db)
    await createTools(db)
    await db.schema
      .createTable('tool_counts')
      .addColumn('sandbox', 'text', (column) => column.primaryKey())
      .addColumn('calls', 'bigint', (column) => column.notNull())
      .execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['tool_counts', 'tools', 'secrets']) await db.schema.dropTable(table).execute()
  },
}

async function createSecrets(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('secrets')
    .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('origin', 'text', (column) => column.notNull())
    .addColumn('key_id', 'text', (column) => column.notNull())
    .addColumn('sealed', 'text', (column) => column.notNull())
    .addColumn('version', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_by', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('secrets_by_name', ['tenant', 'name'])
    .execute()
}

async function createTools(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('tools')
    .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('spec', 'text', (column) => column.notNull())
    .addColumn('version', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_by', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('tools_by_name', ['tenant', 'name'])
    .execute()
}
