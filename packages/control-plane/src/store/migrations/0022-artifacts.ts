import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Artifacts, and what jobs left of them. */
export const artifacts: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    let table = db.schema
      .createTable('artifacts')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
    for (const name of ['agent', 'node', 'state', 'name', 'media_type', 'created_by'])
      table = table.addColumn(name, 'text', (column) => column.notNull())
    for (const name of ['sha256', 'sandbox', 'command', 'step', 'job', 'provenance'])
      table = table.addColumn(name, 'text')
    for (const name of ['size', 'created_at', 'expires_at'])
      table = table.addColumn(name, 'bigint', (column) => column.notNull())
    await table.addColumn('attempt', 'bigint').execute()
    for (const [name, columns] of INDEXES)
      await db.schema
        .createIndex(name)
        .on('artifacts')
        .columns([...columns])
        .execute()
    await db.schema.alterTable('jobs').addColumn('artifacts', 'text').execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('jobs').dropColumn('artifacts').execute()
    await db.schema.dropTable('artifacts').execute()
  },
}

const INDEXES: readonly (readonly [name: string, columns: readonly string[]])[] = [
  ['artifacts_of_tenant', ['tenant', 'id']],
  ['artifacts_of_sandbox', ['sandbox']],
  ['artifacts_of_job', ['job']],
  ['artifacts_of_node', ['node', 'state', 'expires_at']],
]
