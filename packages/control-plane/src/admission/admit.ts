import { AirlockError, type CreateSandboxBody, DEFAULTS, type Limits, type Principal } from '@airlock/contract'
import { findAgent } from '../store/agents.ts'
import { countLiving } from '../store/sandboxes.ts'
import type { Queries } from '../store/store.ts'

const TEMPLATES: ReadonlySet<string> = new Set(['base'])
const RETRY_AFTER_S = 5

/** What a principal asked for and may have. */
export interface Admitted {
  readonly agent: string
  /** The agent's generation once the sandbox is active: it rises when the agent comes from idle. */
  readonly generation: number
  readonly template: string
  readonly limits: Limits
}

/**
 * Whether this principal may have this sandbox (G1). Reads only. An agent that is not there, not approved, suspended or
 * not the principal's to use is the same to the caller: not found (G10).
 */
export async function admit(db: Queries, principal: Principal, body: CreateSandboxBody): Promise<Admitted> {
  const allowed = principal.agents === null || principal.agents.includes(body.agent)
  const agent = allowed ? await findAgent(db, { tenant: principal.tenant, agent: body.agent }) : undefined
  if (!agent || !agent.approved || agent.state === 'suspended') throw new AirlockError('agent_not_found')
  if (!TEMPLATES.has(body.template)) throw new AirlockError('template_not_found')
  return {
    agent: agent.id,
    generation: agent.state === 'connected' ? agent.generation : agent.generation + 1,
    template: body.template,
    limits: fillLimits(body.limits),
  }
}

/** Preconditions: in the transaction that inserts the row, so that two requests cannot share the last place. */
export async function assertCapacity(db: Queries, node: string, capacity: number): Promise<void> {
  if ((await countLiving(db, { node })) >= capacity)
    throw new AirlockError('capacity_exhausted', undefined, { retryAfterS: RETRY_AFTER_S })
}

function fillLimits(asked: CreateSandboxBody['limits']): Limits {
  return {
    memoryBytes: asked.memoryBytes ?? DEFAULTS.memoryBytes.default,
    cpus: asked.cpus ?? DEFAULTS.cpus.default,
    pids: asked.pids ?? DEFAULTS.pids.default,
    diskBytes: asked.diskBytes ?? DEFAULTS.diskBytes.default,
  }
}
