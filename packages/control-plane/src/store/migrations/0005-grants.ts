import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Host paths that agents were granted, and what each sandbox got of them. */
export const grants: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('grants')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('tenant', 'text', (column) => column.notNull())
      .addColumn('agent', 'text', (column) => column.notNull())
      .addColumn('node', 'text', (column) => column.notNull())
      .addColumn('path', 'text', (column) => column.notNull())
      .addColumn('mode', 'text', (column) => column.notNull())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('target', 'text', (column) => column.notNull())
      .addColumn('allowed', 'text', (column) => column.notNull())
      .addColumn('blocked', 'text', (column) => column.notNull())
      .addColumn('dev', 'text', (column) => column.notNull())
      .addColumn('ino', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('created_by', 'text', (column) => column.notNull())
      .addUniqueConstraint('grants_target', ['tenant', 'agent', 'node', 'target'])
      .addForeignKeyConstraint('grants_agent_fk', ['tenant', 'agent'], 'agents', ['tenant', 'id'])
      .execute()
    await db.schema
      .alterTable('sandboxes')
      .addColumn('mounts', 'text', (column) => column.notNull().defaultTo('[]'))
      .execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('sandboxes').dropColumn('mounts').execute()
    await db.schema.dropTable('grants').execute()
  },
}
