import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The registry of agents, and keys that people make. Agents and keys that are there were made by the first start. */
export const who: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await extendAgents(db)
    await extendKeys(db)
    await db.schema
      .createTable('agent_labels')
      .addColumn('tenant', 'text', (column) => column.notNull())
      .addColumn('agent', 'text', (column) => column.notNull())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('value', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('agent_labels_pk', ['tenant', 'agent', 'key'])
      .addForeignKeyConstraint('agent_labels_agent_fk', ['tenant', 'agent'], 'agents', ['tenant', 'id'])
      .execute()
    await db.schema.createIndex('agents_by_state').on('agents').columns(['state', 'last_seen_at']).execute()
    await db.schema.createIndex('api_keys_of_tenant').on('api_keys').columns(['tenant', 'id']).execute()
    await db.schema.createIndex('sandboxes_of_agent').on('sandboxes').columns(['tenant', 'agent', 'state']).execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const index of ['sandboxes_of_agent', 'api_keys_of_tenant', 'agents_by_state'])
      await db.schema.dropIndex(index).execute()
    await db.schema.dropTable('agent_labels').execute()
    for (const column of ['replaces', 'last_used_at', 'created_by', 'platform', 'name'])
      await db.schema.alterTable('api_keys').dropColumn(column).execute()
    for (const column of ['deleted_at', 'last_seen_at', 'updated_at', 'owner', 'metadata', 'labels', 'version'])
      await db.schema.alterTable('agents').dropColumn(column).execute()
  },
}

async function extendAgents(db: Kysely<unknown>): Promise<void> {
  const agents = () => db.schema.alterTable('agents')
  await agents().addColumn('version', 'text').execute()
  await agents()
    .addColumn('labels', 'text', (column) => column.notNull().defaultTo('{}'))
    .execute()
  await agents()
    .addColumn('metadata', 'text', (column) => column.notNull().defaultTo('{}'))
    .execute()
  await agents()
    .addColumn('owner', 'text', (column) => column.notNull().defaultTo('system'))
    .execute()
  await agents()
    .addColumn('updated_at', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
  await agents().addColumn('last_seen_at', 'bigint').execute()
  await agents().addColumn('deleted_at', 'bigint').execute()
  await sql`update agents set updated_at = created_at`.execute(db)
}

/** Whoever could read the key of the first start may do everything; it goes on to be so. */
async function extendKeys(db: Kysely<unknown>): Promise<void> {
  const keys = () => db.schema.alterTable('api_keys')
  await keys()
    .addColumn('name', 'text', (column) => column.notNull().defaultTo('first-start'))
    .execute()
  await keys()
    .addColumn('platform', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await keys()
    .addColumn('created_by', 'text', (column) => column.notNull().defaultTo('system'))
    .execute()
  await keys().addColumn('last_used_at', 'bigint').execute()
  await keys().addColumn('replaces', 'text').execute()
  await sql`update api_keys set platform = 1 where role = 'admin' and purpose is not null`.execute(db)
}
