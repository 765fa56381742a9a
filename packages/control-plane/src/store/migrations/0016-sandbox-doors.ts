import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The doors of a sandbox, as JSON. Until now every sandbox had `control` and no other. */
export const sandboxDoors: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('sandboxes')
      .addColumn('doors', 'text', (column) => column.notNull().defaultTo('["control"]'))
      .execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('sandboxes').dropColumn('doors').execute()
  },
}
