import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Policies with all their versions, and what was decided about commands and steps. */
export const policies: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('policies')
      .addColumn('scope', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('version', 'bigint', (column) => column.notNull())
      .addColumn('document', 'text')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('created_by', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('policies_pk', ['scope', 'name', 'version'])
      .execute()
    for (const table of ['commands', 'steps']) await db.schema.alterTable(table).addColumn('decision', 'text').execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['steps', 'commands']) await db.schema.alterTable(table).dropColumn('decision').execute()
    await db.schema.dropTable('policies').execute()
  },
}
