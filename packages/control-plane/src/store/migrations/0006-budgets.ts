import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Budgets, what is reserved of them, and the ledger of what was used. */
export const budgets: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createBudgets(db)
    await createReservations(db)
    await createUsageFacts(db)
    await reserveForLiving(db)
  },

  async down(db: Kysely<unknown>): Promise<void> {
    for (const table of ['usage_facts', 'reservations', 'budgets']) await db.schema.dropTable(table).execute()
  },
}

async function createBudgets(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('budgets')
    .addColumn('tenant', 'text', (column) => column.notNull().references('tenants.id'))
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('sandboxes', 'bigint')
    .addColumn('memory_bytes', 'bigint')
    .addColumn('cpu_millis', 'bigint')
    .addColumn('compute_seconds_per_day', 'bigint')
    .addColumn('micro_dollars_per_day', 'bigint')
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('budgets_pk', ['tenant', 'agent'])
    .execute()
}

async function createReservations(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('reservations')
    .addColumn('sandbox', 'text', (column) => column.primaryKey())
    .addColumn('id', 'text', (column) => column.notNull().unique())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('node', 'text', (column) => column.notNull())
    .addColumn('memory_bytes', 'bigint', (column) => column.notNull())
    .addColumn('cpu_millis', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .execute()
  await db.schema.createIndex('reservations_of_agent').on('reservations').columns(['tenant', 'agent']).execute()
  await db.schema.createIndex('reservations_of_node').on('reservations').columns(['node', 'expires_at']).execute()
}

async function createUsageFacts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('usage_facts')
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('tenant', 'text', (column) => column.notNull())
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('sandbox', 'text', (column) => column.notNull())
    .addColumn('day', 'text', (column) => column.notNull())
    .addColumn('wall_ms', 'bigint', (column) => column.notNull())
    .addColumn('cpu_ms', 'bigint', (column) => column.notNull())
    .addColumn('compute_ms', 'bigint', (column) => column.notNull())
    .addColumn('micro_dollars', 'bigint', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('usage_facts_pk', ['source', 'key'])
    .execute()
  await db.schema.createIndex('usage_facts_by_day').on('usage_facts').columns(['tenant', 'day', 'agent']).execute()
  await db.schema.createIndex('usage_facts_of_sandbox').on('usage_facts').columns(['sandbox']).execute()
}

interface Living {
  readonly id: string
  readonly tenant: string
  readonly agent: string
  readonly node: string
  readonly limits: string
}

/** Sandboxes that live through the upgrade hold what they were given. */
async function reserveForLiving(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<Living>`select id, tenant, agent, node, limits from sandboxes
    where state in ('creating', 'active', 'paused', 'stopping')`.execute(db)
  for (const { id, tenant, agent, node, limits } of rows) {
    const { memoryBytes, cpus } = JSON.parse(limits) as { memoryBytes: number; cpus: number }
    await sql`insert into reservations (sandbox, id, tenant, agent, node, memory_bytes, cpu_millis) values
      (${id}, ${id.replace('sbx_', 'rsv_')}, ${tenant}, ${agent}, ${node}, ${memoryBytes}, ${Math.round(cpus * 1000)})`.execute(
      db,
    )
  }
}
