import { inParallel } from '@airlock/std'
import { DEFAULT_AGENT, type EndReason } from '@airlock/contract'
import {
  type AgentKey,
  findAnyAgent,
  listAgentsWithSandboxes,
  listSilentAgents,
  type StoredAgent,
} from '../store/agents.ts'
import { countLiving, listLivingOf } from '../store/sandboxes.ts'
import { idleAgent } from './agent-moves.ts'
import type { Context } from '../app/context.ts'
import type { End, Termination } from '../sandboxes/terminate.ts'

const AT_ONCE = 8
/** Agents whose sandboxes are being ended at once; more wait for the next look. */
const MAX_AGENTS = 32
const SILENT_BATCH = 100

type World = Pick<Context, 'store' | 'node' | 'audit' | 'clock' | 'log' | 'heartbeats' | 'agentStaleMs' | 'doorNews'>

/**
 * Ends the sandboxes of agents that may not have any. Each node ends its own; what a crash or another node left is found by
 * the next look.
 */
export class AgentEnds {
  readonly #context: World
  readonly #termination: Termination
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(context: World, termination: Termination) {
    this.#context = context
    this.#termination = termination
  }

  /** Resolves when those of this node are gone, or cannot be ended now. */
  async endSandboxesOf(key: AgentKey, end: End): Promise<void> {
    const { store, node, log, doorNews } = this.#context
    const living = await store.query((db) => listLivingOf(db, { ...key, node: node.id }))
    // Ends wait for their turn; tokens are good for nothing already.
    if (living.length > 0) doorNews.publish({ what: 'revoked', sandboxes: living.map(({ id }) => id) })
    await inParallel(living, AT_ONCE, async ({ id }) => {
      try {
        await this.#termination.terminate(id, end)
      } catch (error) {
        log.warn('a sandbox of an agent does not end yet', { sandbox: id, reason: end.reason, error })
      }
    })
  }

  /** One look of the sweep. Starts the ends that it finds due and does not wait for them. */
  async look(): Promise<void> {
    const { store, node } = this.#context
    for (const agent of await store.query((db) => listAgentsWithSandboxes(db, node.id))) {
      const reason = whyNot(agent)
      if (reason) this.#start(agent, reason)
    }
    const seenBefore = this.#context.clock.now() - this.#context.agentStaleMs
    const silent = await store.query((db) => listSilentAgents(db, { seenBefore, limit: SILENT_BATCH }))
    for (const agent of silent) if (this.#isStale(agent, seenBefore)) this.#start(agent, 'agent_stale')
  }

  /** Waits for the ends under way, however they go. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  #isStale(agent: StoredAgent, seenBefore: number): boolean {
    // It is nobody's program: no sign of life is to be expected of it.
    if (agent.id === DEFAULT_AGENT) return false
    const { lastSeenAt } = this.#context.heartbeats.current(agent)
    // Agents of earlier versions were never seen: what was done to them last counts.
    return (lastSeenAt ?? agent.updatedAt) < seenBefore
  }

  #start(agent: StoredAgent, reason: EndReason): void {
    const name = `${agent.tenant}/${agent.id}`
    if (this.#underWay.has(name) || this.#underWay.size >= MAX_AGENTS) return
    const work = this.#end(agent, reason)
      .catch((error: unknown) => this.#context.log.warn('an agent is not ended yet', { agent: name, reason, error }))
      .finally(() => this.#underWay.delete(name))
    this.#underWay.set(name, work)
  }

  async #end(agent: StoredAgent, reason: EndReason): Promise<void> {
    const key = { tenant: agent.tenant, agent: agent.id }
    if (reason === 'agent_stale') this.#noteStale(agent)
    await this.endSandboxesOf(key, { reason, actor: 'system' })
    if (reason === 'agent_stale') await this.#letGo(agent)
  }

  #noteStale(agent: StoredAgent): void {
    const { tenant, id, generation, lastSeenAt } = this.#context.heartbeats.current(agent)
    const seen = lastSeenAt === null ? null : new Date(lastSeenAt).toISOString()
    this.#context.audit.note({
      tenant,
      agent: id,
      actor: 'system',
      point: 'agent.stale',
      status: 'done',
      payload: { generation, lastSeenAt: seen },
    })
  }

  /** One that was resumed and never had a sandbox again is connected by nothing. */
  async #letGo(agent: StoredAgent): Promise<void> {
    const key = { tenant: agent.tenant, agent: agent.id }
    await this.#context.store.transaction(async (db) => {
      const now = await findAnyAgent(db, key)
      const isSame = now?.generation === agent.generation
      if (isSame && (await countLiving(db, key)) === 0) await idleAgent(db, key, this.#context.clock.now())
    })
  }
}

/** Why an agent may not have sandboxes. */
function whyNot(agent: StoredAgent): EndReason | undefined {
  if (agent.deletedAt !== null) return 'agent_deleted'
  if (!agent.approved) return 'agent_revoked'
  return agent.state === 'suspended' ? 'agent_suspended' : undefined
}
