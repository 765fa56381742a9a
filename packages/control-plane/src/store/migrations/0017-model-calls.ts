import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

const FACT_COLUMNS = ['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens'] as const

/** Model calls under way with the money set aside for them, and what a call used, in the ledger. */
export const modelCalls: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createModelCalls(db)
    for (const name of ['model', 'upstream'])
      await db.schema.alterTable('usage_facts').addColumn(name, 'text').execute()
    for (const name of FACT_COLUMNS) await db.schema.alterTable('usage_facts').addColumn(name, 'bigint').execute()
    await db.schema
      .alterTable('usage_facts')
      .addColumn('estimated', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute()
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const name of ['model', 'upstream', ...FACT_COLUMNS, 'estimated'])
      await db.schema.alterTable('usage_facts').dropColumn(name).execute()
    await db.schema.dropTable('model_calls').execute()
  },
}

async function createModelCalls(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('model_calls')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('node', 'text', (column) => column.notNull())
    .addColumn('doors', 'text', (column) => column.notNull())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('sandbox', 'text', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('upstream', 'text', (column) => column.notNull())
    .addColumn('price', 'text', (column) => column.notNull())
    .addColumn('ceiling_micro_dollars', 'bigint', (column) => column.notNull())
    .addColumn('day', 'text', (column) => column.notNull())
    .addColumn('opened_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('model_calls_of_agent').on('model_calls').columns(['tenant', 'day', 'agent']).execute()
  await db.schema.createIndex('model_calls_of_node').on('model_calls').columns(['node', 'expires_at']).execute()
}
