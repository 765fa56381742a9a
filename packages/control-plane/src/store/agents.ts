import { type AgentState, agentState, labels } from '@airlock/contract'
import { z } from 'zod'
import { flagColumn, jsonColumn } from './engine/json-column.ts'
import { LIVING_STATES } from './sandboxes.ts'
import type { Queries } from './engine/store.ts'

const storedAgent = z.object({
  tenant: z.string(),
  id: z.string(),
  state: agentState,
  generation: z.int(),
  approved: flagColumn,
  version: z.string().nullable(),
  labels: jsonColumn(labels),
  metadata: jsonColumn(z.record(z.string(), z.json())),
  owner: z.string(),
  createdAt: z.int(),
  updatedAt: z.int(),
  lastSeenAt: z.int().nullable(),
  deletedAt: z.int().nullable(),
})
export type StoredAgent = z.infer<typeof storedAgent>

export interface AgentKey {
  readonly tenant: string
  readonly agent: string
}

/** An agent that was there before keeps everything; false then. */
export async function insertAgentIfAbsent(db: Queries, agent: StoredAgent): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('agents')
    .values(toRow(agent))
    .onConflict((conflict) => conflict.columns(['tenant', 'id']).doNothing())
    .executeTakeFirstOrThrow()
  const isNew = (numInsertedOrUpdatedRows ?? 0n) > 0n
  if (isNew) await replaceLabels(db, agent)
  return isNew
}

/** Gives the row of a deleted agent to a new one. Precondition: in a transaction that saw it deleted. */
export async function reviveAgent(db: Queries, agent: StoredAgent): Promise<void> {
  const { tenant, id, ...rest } = toRow(agent)
  await db.updateTable('agents').set(rest).where('tenant', '=', tenant).where('id', '=', id).execute()
  await replaceLabels(db, agent)
}

/** Deleted ones too: only the registry itself wants those. */
export async function findAnyAgent(db: Queries, key: AgentKey): Promise<StoredAgent | undefined> {
  const row = await db
    .selectFrom('agents')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('id', '=', key.agent)
    .executeTakeFirst()
  return row && storedAgent.parse(row)
}

export async function findAgent(db: Queries, key: AgentKey): Promise<StoredAgent | undefined> {
  const found = await findAnyAgent(db, key)
  return found?.deletedAt === null ? found : undefined
}

export interface AgentFilter {
  readonly tenant: string
  readonly agents: readonly string[] | null
  readonly state: AgentState | undefined
  readonly approved: boolean | undefined
  readonly labels: Readonly<Record<string, string>>
  /** Agents whose names come after this one. */
  readonly after: string | undefined
  readonly limit: number
}

/** By name. */
export async function listAgents(db: Queries, filter: AgentFilter): Promise<readonly StoredAgent[]> {
  if (filter.agents?.length === 0) return []
  let query = db
    .selectFrom('agents')
    .selectAll()
    .where('tenant', '=', filter.tenant)
    .where('deletedAt', 'is', null)
    .orderBy('id')
    .limit(filter.limit)
  if (filter.agents) query = query.where('id', 'in', filter.agents)
  if (filter.state !== undefined) query = query.where('state', '=', filter.state)
  if (filter.approved !== undefined) query = query.where('approved', '=', filter.approved ? 1 : 0)
  if (filter.after !== undefined) query = query.where('id', '>', filter.after)
  for (const [key, value] of Object.entries(filter.labels))
    query = query.where((is) =>
      is.exists(
        is
          .selectFrom('agentLabels')
          .select('agentLabels.key')
          .whereRef('agentLabels.tenant', '=', 'agents.tenant')
          .whereRef('agentLabels.agent', '=', 'agents.id')
          .where('agentLabels.key', '=', key)
          .where('agentLabels.value', '=', value),
      ),
    )
  return z.array(storedAgent).parse(await query.execute())
}

export async function countAgents(db: Queries, tenant: string): Promise<number> {
  const { count } = await db
    .selectFrom('agents')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('tenant', '=', tenant)
    .where('deletedAt', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Compare and set; `agent-moves.ts` is the only caller, for it knows which moves are legal. */
export async function updateAgentState(
  db: Queries,
  from: Pick<StoredAgent, 'tenant' | 'id' | 'state' | 'generation'>,
  to: { readonly state: AgentState; readonly generation: number; readonly at: number; readonly seenAt?: number },
): Promise<StoredAgent | undefined> {
  const row = await db
    .updateTable('agents')
    .set({
      state: to.state,
      generation: to.generation,
      updatedAt: to.at,
      ...(to.seenAt === undefined ? {} : { lastSeenAt: to.seenAt }),
    })
    .where('tenant', '=', from.tenant)
    .where('id', '=', from.id)
    .where('state', '=', from.state)
    .where('generation', '=', from.generation)
    .returningAll()
    .executeTakeFirst()
  return row && storedAgent.parse(row)
}

export async function setApproved(
  db: Queries,
  key: AgentKey,
  to: { readonly approved: boolean; readonly at: number },
): Promise<StoredAgent> {
  const row = await db
    .updateTable('agents')
    .set({ approved: to.approved ? 1 : 0, updatedAt: to.at })
    .where('tenant', '=', key.tenant)
    .where('id', '=', key.agent)
    .returningAll()
    .executeTakeFirstOrThrow()
  return storedAgent.parse(row)
}

/** What an agent says of itself, and whether that is still approved. */
export async function updateAgentFacts(
  db: Queries,
  agent: Pick<StoredAgent, 'tenant' | 'id' | 'version' | 'labels' | 'metadata' | 'approved'>,
  at: number,
): Promise<StoredAgent> {
  const { tenant, id, version, labels, metadata, approved } = agent
  const facts = { version, labels: JSON.stringify(labels), metadata: JSON.stringify(metadata) }
  const row = await db
    .updateTable('agents')
    .set({ ...facts, approved: approved ? 1 : 0, updatedAt: at })
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await replaceLabels(db, agent)
  return storedAgent.parse(row)
}

export async function markDeleted(db: Queries, key: AgentKey, at: number): Promise<void> {
  await db
    .updateTable('agents')
    .set({ approved: 0, deletedAt: at, updatedAt: at })
    .where('tenant', '=', key.tenant)
    .where('id', '=', key.agent)
    .execute()
}

/** Times only ever move forward, whoever writes last. */
export async function setAgentSeen(db: Queries, key: AgentKey, at: number): Promise<void> {
  await db
    .updateTable('agents')
    .set({ lastSeenAt: at })
    .where('tenant', '=', key.tenant)
    .where('id', '=', key.agent)
    .where((is) => is.or([is('lastSeenAt', 'is', null), is('lastSeenAt', '<', at)]))
    .execute()
}

/** Agents that hold sandboxes of this node, deleted ones too. */
export async function listAgentsWithSandboxes(db: Queries, node: string): Promise<readonly StoredAgent[]> {
  const rows = await db
    .selectFrom('agents')
    .selectAll()
    .where((is) =>
      is.exists(
        is
          .selectFrom('sandboxes')
          .select('sandboxes.id')
          .whereRef('sandboxes.tenant', '=', 'agents.tenant')
          .whereRef('sandboxes.agent', '=', 'agents.id')
          .where('sandboxes.node', '=', node)
          .where('sandboxes.state', 'in', LIVING_STATES),
      ),
    )
    .execute()
  return z.array(storedAgent).parse(rows)
}

/** Agents that are connected and were last seen before, or never. */
export async function listSilentAgents(
  db: Queries,
  of: { readonly seenBefore: number; readonly limit: number },
): Promise<readonly StoredAgent[]> {
  const rows = await db
    .selectFrom('agents')
    .selectAll()
    .where('state', '=', 'connected')
    .where((is) => is.or([is('lastSeenAt', 'is', null), is('lastSeenAt', '<', of.seenBefore)]))
    .orderBy('lastSeenAt')
    .limit(of.limit)
    .execute()
  return z.array(storedAgent).parse(rows)
}

function toRow(agent: StoredAgent) {
  const { labels, metadata, approved, ...rest } = agent
  return {
    ...rest,
    labels: JSON.stringify(labels),
    metadata: JSON.stringify(metadata),
    approved: approved ? 1 : 0,
  }
}

async function replaceLabels(db: Queries, agent: Pick<StoredAgent, 'tenant' | 'id' | 'labels'>): Promise<void> {
  const { tenant, id } = agent
  await db.deleteFrom('agentLabels').where('tenant', '=', tenant).where('agent', '=', id).execute()
  const pairs = Object.entries(agent.labels).map(([key, value]) => ({ tenant, agent: id, key, value }))
  if (pairs.length > 0) await db.insertInto('agentLabels').values(pairs).execute()
}
