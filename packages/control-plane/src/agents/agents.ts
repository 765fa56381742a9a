import {
  type Agent,
  type AgentState,
  AirlockError,
  BOUNDS,
  type ChangeAgentBody,
  type EndReason,
  type Point,
  type RegisterAgentBody,
  type UpdateAgentBody,
} from '@airlock/contract'
import { isDeepStrictEqual } from 'node:util'
import { assertUsable } from '../sandboxes/admit.ts'
import {
  countAgents,
  findAgent,
  findAnyAgent,
  insertAgentIfAbsent,
  listAgents,
  markDeleted,
  reviveAgent,
  setApproved,
  updateAgentFacts,
  type StoredAgent,
} from '../store/agents.ts'
import { removeGrantsOf } from '../store/grants.ts'
import { countLiving } from '../store/sandboxes.ts'
import type { Queries } from '../store/engine/store.ts'
import type { AgentEnds } from './agent-ends.ts'
import { moveAgent } from './agent-moves.ts'
import type { Context } from '../app/context.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { isOwned, mayUseAgent } from '../sandboxes/owned-sandbox.ts'
import { recordRefusal } from '../evidence/refusals.ts'

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'heartbeats' | 'guardian' | 'approvesVersions'>
type Ends = Pick<AgentEnds, 'endSandboxesOf'>

interface ListAgents {
  readonly state?: AgentState | undefined
  readonly approved?: boolean | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly limit: number
  readonly cursor?: string | undefined
}

/** A change of an agent that is there: what it does to the row, in the transaction that read it. */
type Change = (db: Queries, agent: StoredAgent, at: number) => Promise<StoredAgent>

/**
 * The registry of agents. What gives power (register, approve, resume) waits for its record; what takes it away (revoke,
 * suspend, delete) happens first, ends the agent's sandboxes, and is recorded after. Not yours is not found.
 */
export class Agents {
  readonly #world: World
  readonly #ends: Ends

  constructor(world: World, ends: Ends) {
    this.#world = world
    this.#ends = ends
  }

  /** Safe to repeat: the same agent by the same owner is answered as it is. Anything else in its place is in the way. */
  async register(caller: Caller, body: RegisterAgentBody): Promise<Agent> {
    const { store, clock, guardian } = this.#world
    const { id, version = null, labels, approve } = body
    const wanted = agentDeed(caller, { point: 'agent.register', agent: id }, { version, labels, approve })
    await recordRefusal(this.#world, wanted, async () => {
      assertRegistrable(caller, body)
      const key = { tenant: caller.principal.tenant, agent: id }
      const there = await store.query((db) => findAgent(db, key))
      if (there && !isSame(there, newAgent(caller, body, 0))) throw new AirlockError('agent_exists')
    })
    const deed = await guardian.pass(caller, wanted)
    return doRecorded(this.#world, deed, async () => {
      const fresh = newAgent(caller, body, clock.now())
      const row = await store.transaction((db) => enter(db, fresh))
      return { value: this.#show(row), payload: { state: row.state, generation: row.generation } }
    })
  }

  /** By name, those that the caller may act for. */
  async list(caller: Caller, asked: ListAgents): Promise<Page<Agent>> {
    const { store } = this.#world
    const { tenant, agents } = caller.principal
    const { state, approved, labels, cursor, limit } = asked
    const filter = { tenant, agents, state, approved, labels, after: cursor, limit: limit + 1 }
    const rows = await store.query((db) => listAgents(db, filter))
    return toPage(rows, limit, (row) => this.#show(row))
  }

  async get(caller: Caller, id: string): Promise<Agent> {
    const { store } = this.#world
    return this.#show(await store.query((db) => ownedAgent(db, caller, id)))
  }

  async approve(caller: Caller, id: string, body: ChangeAgentBody): Promise<Agent> {
    return this.#give(caller, { point: 'agent.approve', agent: id, body }, async (db, agent, at) =>
      agent.approved ? agent : setApproved(db, keyOf(agent), { approved: true, at }),
    )
  }

  /** Only out of `suspended`: the other ways into `connected` are for sandboxes. */
  async resume(caller: Caller, id: string, body: ChangeAgentBody): Promise<Agent> {
    return this.#give(caller, { point: 'agent.resume', agent: id, body }, async (db, agent, at) => {
      if (agent.state !== 'suspended')
        throw new AirlockError('invalid_transition', `The agent is ${agent.state}, so there is nothing to resume.`)
      const resumed = await moveAgent(db, agent, { to: 'connected', at })
      // Its sandboxes ended when it was suspended; what is still ending connects nobody.
      return (await countLiving(db, keyOf(agent))) > 0 ? resumed : moveAgent(db, resumed, { to: 'idle', at })
    })
  }

  /** Keeps its approval, unless its version changes where that has to be approved. */
  async update(caller: Caller, id: string, body: UpdateAgentBody): Promise<Agent> {
    const facts = definedOf(body)
    const { expectedGeneration } = body
    const change = expectedGeneration === undefined ? {} : { expectedGeneration }
    const what = { point: 'agent.update', agent: id, body: change, payload: facts } as const
    const updated = await this.#give(caller, what, async (db, agent, at) => {
      const next = { ...agent, ...facts }
      const mustAsk = this.#world.approvesVersions && next.version !== agent.version
      return updateAgentFacts(db, { ...next, approved: agent.approved && !mustAsk }, at)
    })
    if (updated.approved) return updated
    const { actor } = caller.principal
    const key = { tenant: updated.tenant, agent: id }
    await this.#ends.endSandboxesOf(key, { reason: 'agent_revoked', actor, requestId: caller.requestId })
    return this.get(caller, id)
  }

  async revoke(caller: Caller, id: string, body: ChangeAgentBody): Promise<Agent> {
    const what = { point: 'agent.revoke', agent: id, body, reason: 'agent_revoked' } as const
    return this.#take(caller, what, async (db, agent, at) =>
      agent.approved ? setApproved(db, keyOf(agent), { approved: false, at }) : agent,
    )
  }

  async suspend(caller: Caller, id: string, body: ChangeAgentBody): Promise<Agent> {
    const what = { point: 'agent.suspend', agent: id, body, reason: 'agent_suspended' } as const
    return this.#take(caller, what, async (db, agent, at) => moveAgent(db, agent, { to: 'suspended', at }))
  }

  async remove(caller: Caller, id: string, body: ChangeAgentBody): Promise<void> {
    const what = { point: 'agent.delete', agent: id, body, reason: 'agent_deleted' } as const
    await this.#take(caller, what, async (db, agent, at) => {
      await markDeleted(db, keyOf(agent), at)
      await removeGrantsOf(db, keyOf(agent))
      return agent
    })
  }

  /** Whoever must not live gives no sign of life, and neither does who believes in an old generation. */
  async heartbeat(caller: Caller, id: string, body: ChangeAgentBody): Promise<Agent> {
    const { store } = this.#world
    const deed = agentDeed(caller, { point: 'agent.heartbeat', agent: id }, {})
    const agent = await recordRefusal(this.#world, deed, async () => {
      const row = await store.query((db) => ownedAgent(db, caller, id))
      assertUsable(row)
      assertGeneration(row, body)
      return row
    })
    this.#world.heartbeats.beat(keyOf(agent))
    return this.#show(agent)
  }

  async #give(caller: Caller, what: What, change: Change): Promise<Agent> {
    const { store, clock, guardian } = this.#world
    const wanted = agentDeed(caller, what, what.payload ?? {})
    const before = await recordRefusal(this.#world, wanted, () => this.#overseen(caller, what))
    const payload = { ...wanted.payload, state: before.state, generation: before.generation }
    const deed = await guardian.pass(caller, { ...wanted, payload })
    return doRecorded(this.#world, deed, async () => {
      const row = await store.transaction(async (db) => {
        const agent = await ownedAgent(db, caller, what.agent)
        assertGeneration(agent, what.body)
        return change(db, agent, clock.now())
      })
      return { value: this.#show(row), payload: { state: row.state, generation: row.generation } }
    })
  }

  async #take(caller: Caller, what: What & { readonly reason: EndReason }, change: Change): Promise<Agent> {
    const { store, clock, audit } = this.#world
    const deed = agentDeed(caller, what, {})
    const row = await recordRefusal(this.#world, deed, async () => {
      await this.#overseen(caller, what)
      return store.transaction(async (db) => {
        const agent = await ownedAgent(db, caller, what.agent)
        assertGeneration(agent, what.body)
        return change(db, agent, clock.now())
      })
    })
    const { state, generation } = row
    audit.note({ ...deed, status: 'done', payload: { ...deed.payload, state, generation } })
    const { actor } = caller.principal
    await this.#ends.endSandboxesOf(keyOf(row), { reason: what.reason, actor, requestId: caller.requestId })
    const now = await store.query((db) => findAnyAgent(db, keyOf(row)))
    return this.#show(now ?? row)
  }

  /** An agent that the caller may decide about. */
  async #overseen(caller: Caller, what: What): Promise<StoredAgent> {
    const agent = await this.#world.store.query((db) => ownedAgent(db, caller, what.agent))
    assertUnbound(caller)
    assertGeneration(agent, what.body)
    return agent
  }

  #show(row: StoredAgent): Agent {
    const { deletedAt: _deletedAt, lastSeenAt, ...shown } = this.#world.heartbeats.current(row)
    return {
      ...shown,
      createdAt: toTime(row.createdAt),
      updatedAt: toTime(row.updatedAt),
      lastSeenAt: lastSeenAt === null ? null : toTime(lastSeenAt),
    }
  }
}

interface What {
  readonly point: Point
  readonly agent: string
  readonly body: ChangeAgentBody
  /** What evidence says of it besides. */
  readonly payload?: Deed['payload']
}

export async function ownedAgent(db: Queries, caller: Caller, id: string): Promise<StoredAgent> {
  const row = await findAgent(db, { tenant: caller.principal.tenant, agent: id })
  if (!row || !isOwned(caller.principal, { tenant: row.tenant, agent: row.id }))
    throw new AirlockError('agent_not_found')
  return row
}

function assertRegistrable(caller: Caller, body: RegisterAgentBody): void {
  const { principal } = caller
  if (!mayUseAgent(principal, body.id))
    throw new AirlockError('forbidden', 'Who is bound to agents registers only those.')
  if (!body.approve) return
  assertUnbound(caller)
  if (principal.role !== 'admin') throw new AirlockError('forbidden', 'Only an admin approves agents.')
}

function assertGeneration(agent: StoredAgent, body: ChangeAgentBody): void {
  if (body.expectedGeneration === undefined || body.expectedGeneration === agent.generation) return
  const message = `The agent is in generation ${agent.generation}, not ${body.expectedGeneration}.`
  throw new AirlockError('stale_generation', message)
}

/** Preconditions: in a transaction. A deleted agent leaves its generation to whoever takes its name. */
async function enter(db: Queries, fresh: StoredAgent): Promise<StoredAgent> {
  const key = keyOf(fresh)
  const there = await findAnyAgent(db, key)
  if (there?.deletedAt === null) {
    if (isSame(there, fresh)) return there
    throw new AirlockError('agent_exists')
  }
  if ((await countAgents(db, fresh.tenant)) >= BOUNDS.agents) throw new AirlockError('too_many_agents')
  if (!there) {
    await insertAgentIfAbsent(db, fresh)
    return fresh
  }
  if ((await countLiving(db, key)) > 0)
    throw new AirlockError('agent_exists', 'Sandboxes of the deleted agent are still ending.')
  const revived = { ...fresh, generation: there.generation }
  await reviveAgent(db, revived)
  return revived
}

/** The same registration again. Approval is not compared: it may have been decided since. */
function isSame(there: StoredAgent, fresh: StoredAgent): boolean {
  const { owner, version, labels, metadata } = fresh
  const of = { owner: there.owner, version: there.version, labels: there.labels, metadata: there.metadata }
  return isDeepStrictEqual(of, { owner, version, labels, metadata }) && (there.approved || !fresh.approved)
}

function newAgent(caller: Caller, body: RegisterAgentBody, now: number): StoredAgent {
  const { id, version = null, labels, metadata, approve } = body
  const { tenant, actor } = caller.principal
  const given = { id, version, labels, metadata, approved: approve }
  const times = { createdAt: now, updatedAt: now, lastSeenAt: null, deletedAt: null }
  return { ...given, ...times, tenant, owner: actor, state: 'unknown', generation: 0 }
}

/** Only what was given: the rest stays. */
function definedOf({ version, labels, metadata }: UpdateAgentBody) {
  return {
    ...(version === undefined ? {} : { version }),
    ...(labels === undefined ? {} : { labels }),
    ...(metadata === undefined ? {} : { metadata }),
  }
}

function agentDeed(
  caller: Caller,
  of: { readonly point: Point; readonly agent: string },
  payload: Deed['payload'],
): Deed {
  const { tenant, actor } = caller.principal
  const said = { requestId: caller.requestId, ...payload }
  return { point: of.point, tenant, agent: of.agent, sandbox: null, actor, payload: said }
}

function keyOf(agent: StoredAgent): { readonly tenant: string; readonly agent: string } {
  return { tenant: agent.tenant, agent: agent.id }
}

function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
