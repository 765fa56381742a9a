import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The person who holds a key; null where its maker named none, as for all keys from before. */
export const keyPersons: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('api_keys').addColumn('person', 'text').execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('api_keys').dropColumn('person').execute()
  },
}
