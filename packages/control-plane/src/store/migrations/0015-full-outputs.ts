import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What is kept of outputs that went over their cap, as JSON; of those from before nothing is. */
export const fullOutputs: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('commands').addColumn('full_output', 'text').execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('commands').dropColumn('full_output').execute()
  },
}
