import { AirlockError, type AgentState } from '@airlock/contract'
import { assertUsable } from '../sandboxes/admit.ts'
import { type AgentKey, findAgent, findAnyAgent, type StoredAgent, updateAgentState } from '../store/agents.ts'
import type { Queries } from '../store/engine/store.ts'

/** Every legal move of an agent. Out of `suspended` leads only what an admin asks for: `resume`. */
export const AGENT_MOVES = {
  unknown: ['connected'],
  connected: ['idle', 'suspended'],
  idle: ['connected', 'suspended'],
  suspended: ['connected'],
} as const satisfies Record<AgentState, readonly AgentState[]>

/**
 * The only way an agent changes its state: by the table, and compared with what the caller saw. Entering `connected` begins a
 * new generation, and is a sign of life. Precondition: in a transaction.
 */
export async function moveAgent(
  db: Queries,
  agent: StoredAgent,
  move: { readonly to: AgentState; readonly at: number },
): Promise<StoredAgent> {
  const legal: readonly AgentState[] = AGENT_MOVES[agent.state]
  if (!legal.includes(move.to)) throw invalidTransition(agent.state, move.to)
  const moved = await updateAgentState(db, agent, {
    state: move.to,
    at: move.at,
    generation: move.to === 'connected' ? agent.generation + 1 : agent.generation,
    ...(move.to === 'connected' ? { seenAt: move.at } : {}),
  })
  if (moved) return moved
  const now = await findAnyAgent(db, { tenant: agent.tenant, agent: agent.id })
  if (now && now.generation !== agent.generation) throw new AirlockError('stale_generation')
  throw invalidTransition(now?.state ?? 'unknown', move.to)
}

/**
 * A sandbox of this generation becomes active: the agent is connected from now on, or is so already by a sandbox that was
 * faster. Fails closed when it was revoked, suspended or deleted since it was admitted, or has gone on to another generation.
 */
export async function connectAgent(
  db: Queries,
  key: AgentKey,
  as: { readonly generation: number; readonly at: number },
): Promise<StoredAgent> {
  const agent = await findAgent(db, key)
  if (!agent) throw new AirlockError('agent_not_found')
  assertUsable(agent)
  if (agent.state === 'connected' && agent.generation === as.generation) return agent
  if (agent.state === 'connected' || agent.generation !== as.generation - 1) throw new AirlockError('stale_generation')
  return moveAgent(db, agent, { to: 'connected', at: as.at })
}

/** Its last sandbox has ended. A suspended agent stays suspended. */
export async function idleAgent(db: Queries, key: AgentKey, at: number): Promise<void> {
  const agent = await findAnyAgent(db, key)
  if (agent?.state === 'connected') await moveAgent(db, agent, { to: 'idle', at })
}

function invalidTransition(from: AgentState, to: AgentState): AirlockError {
  const hint = from === 'unknown' && to === 'suspended' ? { hint: 'It never connected: revoke its approval.' } : {}
  return new AirlockError('invalid_transition', `An agent cannot go from ${from} to ${to}.`, hint)
}
