import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Tenants, agents, keys, sandboxes, commands and the heads of the evidence. */
export const walk: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createIdentity(db)
    await createSandboxes(db)
    await createCommands(db)
    await db.schema
      .createTable('audit_heads')
      .addColumn('tenant', 'text', (column) => column.primaryKey())
      .addColumn('seq', 'bigint', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull())
      .addColumn('head', 'text', (column) => column.notNull())
      .addColumn('stored_at', 'bigint', (column) => column.notNull())
      .execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['audit_heads', 'commands', 'sandbox_labels', 'sandboxes', 'api_keys', 'agents', 'tenants'])
      await db.schema.dropTable(table).execute()
  },
}

async function createIdentity(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('tenants')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('agents')
    .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('generation', 'bigint', (column) => column.notNull())
    .addColumn('approved', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('agents_pk', ['tenant', 'id'])
    .execute()
  await db.schema
    .createTable('api_keys')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('hash', 'text', (column) => column.notNull())
    .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
    .addColumn('role', 'text', (column) => column.notNull())
    .addColumn('agents', 'text')
    .addColumn('purpose', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('revoked_at', 'bigint')
    .execute()
}

async function createSandboxes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sandboxes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('generation', 'bigint', (column) => column.notNull())
    .addColumn('name', 'text')
    .addColumn('node', 'text', (column) => column.notNull())
    .addColumn('boot_id', 'text', (column) => column.notNull())
    .addColumn('template', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('labels', 'text', (column) => column.notNull())
    .addColumn('limits', 'text', (column) => column.notNull())
    .addColumn('ttl_ms', 'bigint', (column) => column.notNull())
    .addColumn('idle_ms', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('last_active_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('ends_at', 'bigint', (column) => column.notNull())
    .addColumn('ended_at', 'bigint')
    .addColumn('end_reason', 'text')
    .addColumn('error', 'text')
    .addColumn('isolation', 'text')
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('recorded', 'integer', (column) => column.notNull())
    .addForeignKeyConstraint('sandboxes_agent_fk', ['tenant', 'agent'], 'agents', ['tenant', 'id'])
    .execute()
  await db.schema
    .createIndex('sandboxes_living_name')
    .unique()
    .on('sandboxes')
    .columns(['tenant', 'agent', 'name'])
    .where(sql.ref('state'), 'in', sql`('creating', 'active', 'paused', 'stopping')`)
    .execute()
  await db.schema.createIndex('sandboxes_of_tenant').on('sandboxes').columns(['tenant', 'state', 'id']).execute()
  await db.schema.createIndex('sandboxes_by_state').on('sandboxes').columns(['state', 'recorded']).execute()
  await db.schema
    .createTable('sandbox_labels')
    .addColumn('sandbox', 'text', (column) => column.notNull().references('sandboxes.id').onDelete('cascade'))
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('sandbox_labels_pk', ['sandbox', 'key'])
    .execute()
}

async function createCommands(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('commands')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('sandbox', 'text', (column) => column.notNull().references('sandboxes.id').onDelete('cascade'))
    .addColumn('argv', 'text', (column) => column.notNull())
    .addColumn('cwd', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('exit_code', 'integer')
    .addColumn('signal', 'text')
    .addColumn('timed_out', 'integer', (column) => column.notNull())
    .addColumn('truncated', 'integer', (column) => column.notNull())
    .addColumn('output_bytes', 'bigint', (column) => column.notNull())
    .addColumn('max_output_bytes', 'bigint', (column) => column.notNull())
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('ended_at', 'bigint')
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('recorded', 'integer', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('commands_of_sandbox').on('commands').columns(['sandbox', 'id']).execute()
  await db.schema.createIndex('commands_by_state').on('commands').columns(['state', 'recorded']).execute()
}
