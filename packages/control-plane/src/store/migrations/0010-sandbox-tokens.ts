import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** From when on the tokens of a sandbox count, for those whose tokens were taken back. */
export const sandboxTokens: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('sandbox_tokens')
      .addColumn('sandbox', 'text', (column) => column.primaryKey().references('sandboxes.id'))
      .addColumn('void_before', 'bigint', (column) => column.notNull())
      .execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.dropTable('sandbox_tokens').execute()
  },
}
