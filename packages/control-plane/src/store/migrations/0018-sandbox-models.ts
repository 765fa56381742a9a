import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Models of a sandbox with caps on their calls, and budgets of calls and tokens. */
export const sandboxModels: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    const added = [
      ['sandboxes', 'models', 'text', '[]'],
      ['sandboxes', 'model_limits', 'text', '{}'],
      ['model_calls', 'ceiling_tokens', 'bigint', 0],
      ['usage_facts', 'calls', 'bigint', 0],
      ['usage_facts', 'charged_tokens', 'bigint', 0],
    ] as const
    for (const [table, name, type, initial] of added)
      await db.schema
        .alterTable(table)
        .addColumn(name, type, (column) => column.notNull().defaultTo(initial))
        .execute()
    for (const name of ['model_calls_per_day', 'model_tokens_per_day'])
      await db.schema.alterTable('budgets').addColumn(name, 'bigint').execute()
    await db.schema.createIndex('model_calls_of_sandbox').on('model_calls').columns(['sandbox']).execute()
    await countOldCalls(db)
  },

  async down(db: Kysely<unknown>): Promise<void> {
    await db.schema.dropIndex('model_calls_of_sandbox').execute()
    const columns = [
      ['sandboxes', 'models'],
      ['sandboxes', 'model_limits'],
      ['model_calls', 'ceiling_tokens'],
      ['usage_facts', 'calls'],
      ['usage_facts', 'charged_tokens'],
      ['budgets', 'model_calls_per_day'],
      ['budgets', 'model_tokens_per_day'],
    ] as const
    for (const [table, name] of columns) await db.schema.alterTable(table).dropColumn(name).execute()
  },
}

async function countOldCalls(db: Kysely<unknown>): Promise<void> {
  await sql`update usage_facts set calls = 1, charged_tokens = coalesce(input_tokens, 0) + coalesce(output_tokens, 0)
    + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) where source = 'model'`.execute(db)
}
