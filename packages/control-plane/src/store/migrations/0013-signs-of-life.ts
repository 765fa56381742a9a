import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What the clock of a node said at its last sign of life; `seen_at` is by the clock of the store. */
export const signsOfLife: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('nodes')
      .addColumn('clock_at', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute()
    // Until now the one was the other.
    await sql`update nodes set clock_at = seen_at`.execute(db)
    // What a lost node had reserved is free with its sandboxes.
    await indexNodes(db, ['node'])
    await db.schema.alterTable('reservations').dropColumn('expires_at').execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('reservations').addColumn('expires_at', 'bigint').execute()
    await indexNodes(db, ['node', 'expires_at'])
    await db.schema.alterTable('nodes').dropColumn('clock_at').execute()
  },
}

async function indexNodes(db: Kysely<unknown>, columns: readonly string[]): Promise<void> {
  await db.schema.dropIndex('reservations_of_node').execute()
  await db.schema
    .createIndex('reservations_of_node')
    .on('reservations')
    .columns([...columns])
    .execute()
}
