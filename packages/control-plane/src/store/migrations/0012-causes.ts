import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Why commands and steps ended; of those from before nobody can tell. */
export const causes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of ['commands', 'steps']) await db.schema.alterTable(table).addColumn('cause', 'text').execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['steps', 'commands']) await db.schema.alterTable(table).dropColumn('cause').execute()
  },
}
