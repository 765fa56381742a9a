import { z } from 'zod'
import { flagColumn } from './json-column.ts'
import type { Queries } from './store.ts'

const agentState = z.enum(['unknown', 'connected', 'idle', 'suspended'])

const storedAgent = z.object({
  tenant: z.string(),
  id: z.string(),
  state: agentState,
  generation: z.int(),
  approved: flagColumn,
  createdAt: z.int(),
})
export type StoredAgent = z.infer<typeof storedAgent>

interface AgentKey {
  readonly tenant: string
  readonly agent: string
}

export async function insertAgentIfAbsent(db: Queries, agent: StoredAgent): Promise<void> {
  await db
    .insertInto('agents')
    .values({ ...agent, approved: agent.approved ? 1 : 0 })
    .onConflict((conflict) => conflict.columns(['tenant', 'id']).doNothing())
    .execute()
}

export async function findAgent(db: Queries, key: AgentKey): Promise<StoredAgent | undefined> {
  const row = await db
    .selectFrom('agents')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('id', '=', key.agent)
    .executeTakeFirst()
  return row && storedAgent.parse(row)
}

/** Compare and set: false when the agent is not idle, or its generation is not the one before. */
export async function connectAgent(db: Queries, key: AgentKey, generation: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('agents')
    .set({ state: 'connected', generation })
    .where('tenant', '=', key.tenant)
    .where('id', '=', key.agent)
    .where('state', 'in', ['unknown', 'idle'])
    .where('generation', '=', generation - 1)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** A suspended agent stays suspended. */
export async function idleAgent(db: Queries, key: AgentKey): Promise<void> {
  await db
    .updateTable('agents')
    .set({ state: 'idle' })
    .where('tenant', '=', key.tenant)
    .where('id', '=', key.agent)
    .where('state', '=', 'connected')
    .execute()
}
