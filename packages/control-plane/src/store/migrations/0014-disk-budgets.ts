import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Disk as a budget, and what sandboxes hold of it. */
export const diskBudgets: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('budgets').addColumn('disk_bytes', 'bigint').execute()
    await db.schema
      .alterTable('reservations')
      .addColumn('disk_bytes', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute()
    await reserveForLiving(db)
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['reservations', 'budgets'])
      await db.schema.alterTable(table).dropColumn('disk_bytes').execute()
  },
}

/** Sandboxes that live through the upgrade hold the disks that they have. */
async function reserveForLiving(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ readonly id: string; readonly limits: string }>`select id, limits from sandboxes
    where state in ('creating', 'active', 'paused', 'stopping')`.execute(db)
  for (const { id, limits } of rows) {
    const { diskBytes } = JSON.parse(limits) as { readonly diskBytes: number }
    await sql`update reservations set disk_bytes = ${diskBytes} where sandbox = ${id}`.execute(db)
  }
}
