import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Last records of model calls that the evidence may not have yet. */
export const modelCallEnds: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('model_call_ends')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('node', 'text', (column) => column.notNull())
      .addColumn('record', 'text', (column) => column.notNull())
      .execute()
    await db.schema.createIndex('model_call_ends_of_node').on('model_call_ends').columns(['node', 'id']).execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.dropTable('model_call_ends').execute()
  },
}
