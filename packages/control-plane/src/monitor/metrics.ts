import {
  type AgentMetrics,
  BOUNDS,
  type MetricEvent,
  type MetricPoint,
  type MetricsQuery,
  type NodeDisk,
  type SandboxMetrics,
  type SandboxNow,
  type TenantMetrics,
} from '@airlock/contract'
import { ownedAgent } from '../agents/agents.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { isEnded } from '../sandboxes/lifecycle.ts'
import { assertHere, mayUseAgent, ownedSandbox } from '../sandboxes/owned-sandbox.ts'
import { StreamPlaces } from '../commands/stream-places.ts'
import { countAlerts, countAlertsOf } from '../store/alerts.ts'
import { countLiving, listLivingHere, type StoredSandbox } from '../store/sandboxes.ts'
import { KEPT_MS } from './history.ts'
import { agentSubject, type Monitor, type Seen } from './monitor.ts'
import type { Judge } from './observed.ts'
import { overviewOf, type MonitorOverview } from './overview.ts'
import { totalOf } from './totals.ts'

const DAY_MS = 24 * 3600 * 1000
/** Sandboxes of one answer; the sum is of all. */
const MOST_SHOWN = 1000

/** What sandboxes use, for callers: of their own tenant, and of the agents they may act for. */
export interface MetricFeed {
  tenant(caller: Caller, query: { readonly agent?: string | undefined }): Promise<TenantMetrics>
  /** One that has ended or is on another node has its history, as far as that is written, and no now. */
  sandbox(caller: Caller, id: string, query: MetricsQuery): Promise<SandboxMetrics>
  agent(caller: Caller, id: string, query: MetricsQuery): Promise<AgentMetrics>
  /** Only on the node that has it. Ends with `ended`. */
  follow(caller: Caller, id: string, signal: AbortSignal): Promise<AsyncIterable<MetricEvent>>
  /** Of the whole node, for who runs it. */
  overview(): MonitorOverview & { readonly disk: NodeDisk | null }
}

type World = Pick<Context, 'store' | 'node' | 'clock' | 'readiness'>

export class Metrics implements MetricFeed {
  readonly #world: World
  readonly #monitor: Monitor
  readonly #judge: Judge
  readonly #places = new StreamPlaces(BOUNDS.metricStreams)

  constructor(world: World, parts: { readonly monitor: Monitor; readonly judge: Judge }) {
    this.#world = world
    this.#monitor = parts.monitor
    this.#judge = parts.judge
  }

  async tenant(caller: Caller, { agent }: { readonly agent?: string | undefined }): Promise<TenantMetrics> {
    const { principal } = caller
    const asked = agent !== undefined && mayUseAgent(principal, agent) ? [agent] : []
    const agents = agent === undefined ? principal.agents : asked
    return { tenant: principal.tenant, ...(await this.#living({ tenant: principal.tenant, agents })) }
  }

  async sandbox(caller: Caller, id: string, query: MetricsQuery): Promise<SandboxMetrics> {
    const { store } = this.#world
    const row = await ownedSandbox(store, caller, id)
    return { ...(await this.#now(row)), history: await this.#history(row.id, query) }
  }

  async agent(caller: Caller, id: string, query: MetricsQuery): Promise<AgentMetrics> {
    const { store, node, clock } = this.#world
    const { tenant } = await store.query((db) => ownedAgent(db, caller, id))
    const { total, sandboxes } = await this.#living({ tenant, agents: [id] })
    const raised = await store.query((db) => countAlerts(db, { tenant, agent: id, since: clock.now() - DAY_MS }))
    const history = await this.#history(agentSubject(node.id, { tenant, agent: id }), query)
    return { agent: id, total, raised, sandboxes, history }
  }

  async follow(caller: Caller, id: string, signal: AbortSignal): Promise<AsyncIterable<MetricEvent>> {
    const { store } = this.#world
    const row = await ownedSandbox(store, caller, id)
    if (isEnded(row.state)) return onlyEnded(id)
    await assertHere(this.#world, row)
    return this.#monitor.follow(id, this.#places.take(caller.principal.tenant), signal)
  }

  overview(): MonitorOverview & { readonly disk: NodeDisk | null } {
    const { disk } = this.#world.readiness
    return { ...overviewOf(this.#monitor, (sandbox) => this.#judge.of(sandbox).alerts), disk }
  }

  async #living(of: { readonly tenant: string; readonly agents: readonly string[] | null }) {
    const { store, node } = this.#world
    const here = { ...of, node: node.id }
    const rows = await store.query((db) => listLivingHere(db, { ...here, limit: MOST_SHOWN + 1 }))
    const truncated = rows.length > MOST_SHOWN
    const sandboxes = truncated ? await store.query((db) => countLiving(db, here)) : rows.length
    const isMeant = ({ row }: Seen): boolean =>
      row.tenant === of.tenant && (of.agents === null || of.agents.includes(row.agent))
    const used = totalOf(this.#monitor.latest().filter(isMeant), (sandbox) => this.#judge.of(sandbox).alerts)
    return {
      total: { ...used, sandboxes },
      sandboxes: rows.slice(0, MOST_SHOWN).map((row) => this.#shown(row, this.#judge.of(row.id))),
      truncated,
    }
  }

  /** What is not watched here is told by the store. */
  async #now(row: StoredSandbox): Promise<SandboxNow> {
    const { store, node } = this.#world
    if (!isEnded(row.state) && row.node === node.id) return this.#shown(row, this.#judge.of(row.id))
    return this.#shown(row, { alerts: [], raised: await store.query((db) => countAlertsOf(db, row.id)) })
  }

  #shown(row: StoredSandbox, { alerts, raised }: ReturnType<Judge['of']>): SandboxNow {
    const { id: sandbox, name, agent, state, limits } = row
    const now = this.#monitor.latestOf(sandbox)
    return { sandbox, name, agent, state, limits, now, alerts: [...alerts], raised }
  }

  async #history(subject: string, { resolution, since }: MetricsQuery): Promise<MetricPoint[]> {
    const kept = this.#world.clock.now() - KEPT_MS[resolution]
    const from = since === undefined ? kept : Math.max(kept, Date.parse(since))
    return [...(await this.#monitor.history.read(subject, { resolution, since: from }))]
  }
}

async function* onlyEnded(sandbox: string): AsyncGenerator<MetricEvent> {
  yield { event: 'ended', sandbox }
}
