import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Runs are jobs with an agent program; graphs are the agent programs of tenants. */
export const runs: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const name of ['run', 'result']) await db.schema.alterTable('jobs').addColumn(name, 'text').execute()
    await db.schema
      .createTable('graphs')
      .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('spec', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('graphs_key', ['tenant', 'name'])
      .execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.dropTable('graphs').execute()
    for (const name of ['run', 'result']) await db.schema.alterTable('jobs').dropColumn(name).execute()
  },
}
