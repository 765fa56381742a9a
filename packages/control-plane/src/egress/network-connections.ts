import {
  AirlockError,
  type CloseNetworkCall,
  type OpenedNetworkCall,
  type OpenNetworkCall,
  type Operation,
  type Question,
} from '@airlock/contract'
import { inParallel, newId } from '@airlock/std'
import type { SandboxCaller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import type { Deed } from '../evidence/evidence.ts'
import { type Governed, saying } from '../policies/guardian.ts'
import { assertUsable } from '../sandboxes/admit.ts'
import { findAgent } from '../store/agents.ts'
import { findSandbox, type StoredSandbox } from '../store/sandboxes.ts'

type World = Pick<
  Context,
  'store' | 'node' | 'clock' | 'audit' | 'guardian' | 'policies' | 'kills' | 'readiness' | 'doorNews' | 'log'
>

/** How long a program waits for a person. */
const ASK_WAIT_MS = 30_000
/** The doors report the ends of a sandbox that ended within this time. */
const LAST_REPORTS_MS = 10_000
/** Connections that are judged again at once. */
const JUDGED_AT_ONCE = 16
/** Of one node: more than the doors have sockets for. */
const MAX_OPEN = 20_000

/** Where a call of the doors came from. */
export interface NetworkOrigin {
  /** The connection of the doors: when it is gone, so is everything that was opened by it. */
  readonly line: object
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

interface OpenConnection {
  readonly id: string
  readonly sandbox: string
  readonly line: object
  readonly deed: Governed
  readonly question: Question
  readonly openedAt: number
  /** A person let it pass: that rules still ask changes nothing. */
  readonly isApproved: boolean
  /** Rules deny it since it was opened. */
  isDenied: boolean
}

/**
 * Connections of sandboxes to hosts: decided on and recorded before a name is resolved, judged again when rules change, recorded
 * when they end. Every connection that was opened has exactly one end in the evidence, whoever dies meanwhile.
 */
export class NetworkConnections {
  readonly #world: World
  readonly #open = new Map<string, OpenConnection>()
  /** Counts changes of the rules. */
  #revision = 0

  constructor(world: World) {
    this.#world = world
    world.doorNews.subscribe((change) => {
      if (change.what === 'policy') void this.#judgeAll()
      if (change.what === 'shut') this.#expectLast(change.sandboxes)
    })
  }

  async open(asked: OpenNetworkCall, { line, signal }: NetworkOrigin): Promise<OpenedNetworkCall> {
    const { readiness, guardian, clock, audit } = this.#world
    readiness.assert('serving')
    readiness.assert('granting')
    if (this.#open.size >= MAX_OPEN) throw new AirlockError('too_many_requests')
    const row = await this.#callerRow(asked.sandbox)
    const caller = this.#callerOf(row, asked, signal)
    const question = questionOf(caller, deedOf(caller, asked), { traffic: asked.traffic, asked })
    const revision = this.#revision
    const passed = await guardian.pass(caller, deedOf(caller, asked), question.operation)
    const id = newId('con', clock.now())
    const deed = saying(passed, { connection: id })
    const isApproved = passed.decision.rules.some(({ policy }) => policy === 'approval')
    const open = { id, sandbox: row.id, line, deed, question, openedAt: clock.now(), isApproved, isDenied: false }
    this.#open.set(id, open)
    try {
      if (revision !== this.#revision) await this.#judge(open)
      const raw = await this.#mayBeRaw(question, asked)
      await audit.require({ ...deed, status: 'requested' })
      this.#assertOpen(open, signal)
      return { connection: id, raw }
    } catch (error) {
      this.#end(open, { ...NOTHING, reason: open.isDenied ? 'policy' : 'not_ready' })
      throw error
    }
  }

  /** Idempotent. A connection of another sandbox, or that nobody opened, changes nothing. */
  close(end: CloseNetworkCall): void {
    const open = this.#open.get(end.connection)
    if (open?.sandbox === end.sandbox) this.#end(open, end)
  }

  /** The connection of the doors broke: they have cut all of these, and cannot say what they carried. */
  lost(line: object): void {
    for (const open of this.#open.values()) if (open.line === line) this.#endUnknown(open)
  }

  #end(open: OpenConnection, end: Omit<CloseNetworkCall, 'sandbox' | 'connection'>): void {
    const { address, sent, received, reason, message } = end
    if (!this.#open.delete(open.id)) return
    const payload = { ...open.deed.payload, address, sent, received, reason }
    const durationMs = this.#world.clock.now() - open.openedAt
    const record = { ...open.deed, payload, durationMs }
    // What carried something was done, however it ended.
    const isDone = message === null || sent + received > 0
    if (isDone) this.#world.audit.note({ ...record, status: 'done' })
    else this.#world.audit.note({ ...record, status: 'failed', error: { code: reason ?? 'internal', message } })
  }

  #endUnknown(open: OpenConnection): void {
    if (!this.#open.delete(open.id)) return
    const durationMs = this.#world.clock.now() - open.openedAt
    this.#world.audit.note({ ...open.deed, status: 'unknown', durationMs })
  }

  #expectLast(sandboxes: readonly string[] | null): void {
    const left = [...this.#open.values()].filter(({ sandbox }) => sandboxes?.includes(sandbox) ?? true)
    if (left.length === 0) return
    setTimeout(() => {
      for (const open of left) this.#endUnknown(open)
    }, LAST_REPORTS_MS).unref()
  }

  /** Fails closed: what cannot be judged is cut. */
  async #judgeAll(): Promise<void> {
    this.#revision += 1
    const denied: OpenConnection[] = []
    await inParallel([...this.#open.values()], JUDGED_AT_ONCE, async (open) => {
      await this.#judge(open)
      if (open.isDenied) denied.push(open)
    })
    for (const [sandbox, cut] of Map.groupBy(denied, (open) => open.sandbox))
      this.#world.doorNews.publish({ what: 'cut', sandbox, connections: cut.map(({ id }) => id) })
  }

  async #judge(open: OpenConnection): Promise<void> {
    const { guardian, log } = this.#world
    try {
      const { effect } = (await guardian.explain(open.question)).decision
      open.isDenied ||= effect === 'deny' || (effect === 'ask' && !open.isApproved)
    } catch (error) {
      log.warn('could not judge an open connection again; cutting it', { connection: open.id, error })
      open.isDenied = true
    }
  }

  #assertOpen(open: OpenConnection, { aborted }: AbortSignal): void {
    // Nobody hears the answer, so nothing is connected.
    if (aborted) throw new AirlockError('not_ready', 'Nobody waits for the connection any more.')
    if (open.isDenied) throw new AirlockError('policy_denied', 'The rules changed meanwhile.')
    if (!this.#open.has(open.id)) throw new AirlockError('not_ready')
  }

  /** Other sources are asked only where the rules allow it. */
  async #mayBeRaw(of: Question, asked: OpenNetworkCall): Promise<boolean> {
    const { policies, guardian } = this.#world
    if (asked.traffic !== 'tls') return false
    const question = { ...of, operation: operationOf(asked, 'raw') }
    if (policies.decide(question).effect !== 'allow') return false
    return (await guardian.explain(question)).decision.effect === 'allow'
  }

  /** The sandbox whose socket it was: one of this node that runs, has the door, and is of an agent that may act. */
  async #callerRow(id: string): Promise<StoredSandbox> {
    const { store, node, kills } = this.#world
    const row = await store.query((db) => findSandbox(db, id))
    if (row?.state === 'paused') throw new AirlockError('sandbox_paused')
    if (row?.state !== 'active' || row.node !== node.id) throw new AirlockError('sandbox_ended')
    if (!row.doors.includes('egress')) throw new AirlockError('forbidden', 'The sandbox has no egress door.')
    kills.assertAlive({ tenant: row.tenant, agent: row.agent, sandbox: row.id })
    const agent = await store.query((db) => findAgent(db, row))
    if (!agent) throw new AirlockError('agent_not_found')
    assertUsable(agent)
    if (agent.generation !== row.generation) throw new AirlockError('stale_generation')
    return row
  }

  /** Asks for the same host and port join one approval. */
  #callerOf({ id: sandbox, tenant, agent }: StoredSandbox, asked: OpenNetworkCall, signal: AbortSignal): SandboxCaller {
    const { host, port, traffic, requestId } = asked
    return {
      principal: { actor: `sandbox:${sandbox}`, tenant, role: 'sandbox', agent, sandbox },
      requestId,
      asked: { route: 'network.connect', params: { sandbox }, query: null, body: { host, port, traffic } },
      approvalWait: { until: this.#world.clock.now() + ASK_WAIT_MS, signal },
      assertGood: async () => void (await this.#callerRow(sandbox)),
    }
  }
}

const NOTHING = { address: null, sent: 0, received: 0, message: 'It was not connected.' } as const

function deedOf({ principal }: SandboxCaller, { host, port, traffic, method, requestId }: OpenNetworkCall): Deed {
  const { tenant, agent, sandbox, actor } = principal
  const payload = { requestId, host, port, traffic, ...(method === null ? {} : { method }) }
  return { point: 'network.connect', tenant, agent, sandbox, actor, payload }
}

function operationOf({ host, port }: OpenNetworkCall, traffic: 'tls' | 'http' | 'raw'): Operation {
  return { kind: 'network', host, port, traffic }
}

function questionOf(
  { principal }: SandboxCaller,
  { point, tenant, actor, agent, sandbox }: Deed,
  of: { readonly traffic: 'tls' | 'http' | 'raw'; readonly asked: OpenNetworkCall },
): Question {
  const operation = operationOf(of.asked, of.traffic)
  return { point, tenant, actor, role: principal.role, agent, sandbox, operation }
}
