import {
  AirlockError,
  type CreateSandboxBody,
  type DoorName,
  type Limits,
  type ModelLimits,
  modelLimits,
  type Principal,
} from '@airlock/contract'
import { findAgent, type StoredAgent } from '../store/agents.ts'
import type { Queries } from '../store/engine/store.ts'
import { assertNotKilled } from '../kills/kill-list.ts'
import { doorsOf } from '../doors/sandbox-doors.ts'
import { fillLimits } from './fill-limits.ts'
import { type TemplateFacts, templateFacts } from '../templates/template-facts.ts'

/** What was asked for, with the agent that it is for. */
export type SandboxOfAgent = CreateSandboxBody & { readonly agent: string }

/** What a principal asked for and may have. */
export interface Admitted {
  readonly agent: string
  /** The agent's generation once the sandbox is active: it rises when the agent comes from idle. */
  readonly generation: number
  readonly template: TemplateFacts
  readonly limits: Limits
  /** What the caller asked for, over what the template has. */
  readonly env: CreateSandboxBody['env']
  readonly doors: DoorName[]
  /** As they were named: the catalog knows which are there. */
  readonly models: readonly string[]
  readonly modelLimits: ModelLimits
}

/**
 * Whether this principal may have this sandbox (G1). Reads only. An agent that is not there and one that is not the
 * principal's to use are the same to the caller: not found (G10).
 */
export async function admit(db: Queries, principal: Principal, body: SandboxOfAgent): Promise<Admitted> {
  const allowed = principal.agents === null || principal.agents.includes(body.agent)
  const agent = allowed ? await findAgent(db, { tenant: principal.tenant, agent: body.agent }) : undefined
  if (!agent) throw new AirlockError('agent_not_found')
  assertUsable(agent)
  await assertNotKilled(db, { tenant: principal.tenant, agent: agent.id })
  const template = await templateFacts(db, { tenant: principal.tenant, name: body.template })
  const models = [...template.spec.models, ...body.models]
  return {
    agent: agent.id,
    generation: agent.state === 'connected' ? agent.generation : agent.generation + 1,
    template,
    limits: fillLimits({ ...template.spec.limits, ...body.limits }),
    env: { ...template.spec.env, ...body.env },
    doors: doorsOf(template.spec.doors, body.doors, models.length > 0 ? ['llm'] : []),
    models,
    modelLimits: modelLimits.parse({ ...template.spec.modelLimits, ...body.modelLimits }),
  }
}

/** Only a live, approved agent has sandboxes (G1). */
export function assertUsable(agent: StoredAgent): void {
  if (!agent.approved) throw new AirlockError('agent_not_approved')
  if (agent.state === 'suspended') throw new AirlockError('agent_suspended')
}
