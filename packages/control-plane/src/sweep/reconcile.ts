import type { EndReason, NodeSandbox } from '@airlock/contract'
import { type CommandEnd, listRunning, type StoredCommand } from '../store/commands.ts'
import { findSandbox, listLiving, type StoredSandbox } from '../store/sandboxes.ts'
import { listUnendedSteps, type StepEnd, type StoredStep } from '../store/steps.ts'
import type { Activity } from '../sandboxes/activity.ts'
import { billSandbox } from '../spend/billing.ts'
import type { CommandWatch } from '../commands/command-watch.ts'
import type { Context } from '../app/context.ts'
import { requireAtStart } from '../evidence/evidence.ts'
import type { Creation } from '../sandboxes/create.ts'
import { LOST_FOR, NODE_LOST } from '../sandboxes/end-cause.ts'
import { isEnded } from '../sandboxes/lifecycle.ts'
import type { LimitChanges } from '../sandboxes/limits.ts'
import type { Pauses } from '../sandboxes/pauses.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { End, Termination } from '../sandboxes/terminate.ts'

/** Ends under way at once; more wait for the next look. */
const MAX_ENDS = 32

type Found = Pick<End, 'reason' | 'error' | 'aliveAt'>

interface Parts {
  readonly activity: Activity
  readonly watch: CommandWatch<StoredCommand, CommandEnd>
  readonly stepWatch: CommandWatch<StoredStep, StepEnd>
  readonly sessions: Sessions
  readonly creation: Creation
  readonly termination: Termination
  readonly pauses: Pauses
  readonly limitChanges: LimitChanges
}

/**
 * Compares what the store says of this node with what its data plane has, and makes them agree. Rows are read before the data plane
 * is asked, so a sandbox that was there first and is absent after is really gone; a sandbox without a row is looked up
 * again, for its row is older than itself. A data plane that does not answer changes nothing.
 */
export class Reconciler {
  readonly #context: Context
  readonly #parts: Parts
  readonly #ends = new Map<string, Promise<unknown>>()
  /** What ran in the data plane at the last look. */
  #lastLook: { readonly at: number; readonly found: ReadonlySet<string> }

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
    this.#lastLook = { at: context.aliveBefore, found: new Set() }
  }

  /** One look. Starts the ends that it finds due and does not wait for them; answers the sandboxes that live on. */
  async look(): Promise<readonly StoredSandbox[]> {
    const { store, dataPlane, readiness, node, clock } = this.#context
    const rows = await store.query((db) => listLiving(db, node.id))
    const health = await dataPlane.health()
    const found = new Map((await dataPlane.list()).map((sandbox) => [sandbox.id, sandbox]))
    readiness.nodeAnswered(health)
    const living: StoredSandbox[] = []
    for (const row of rows) {
      const there = found.get(row.id)
      await this.#seeAlive(row, there)
      const reason = this.#judge(row, there, health.bootId)
      const lostFor = health.damaged.includes(row.id) ? 'state_damaged' : there?.lostFor
      if (reason) this.#end(row, { reason, ...causeOf(lostFor, reason), ...this.#aliveAt(row, there) })
      else living.push(row)
      if (!reason && there) this.#agree(row, there)
    }
    this.#lastLook = { at: clock.now(), found: new Set([...found.values()].filter(runs).map(({ id }) => id)) }
    const known = new Set(rows.map((row) => row.id))
    for (const id of found.keys()) if (!known.has(id)) await this.#removeOrphan(id)
    for (const command of await store.query((db) => listRunning(db, node.id))) this.#parts.watch.ensure(command)
    const steps = await store.query((db) => listUnendedSteps(db, node.id))
    for (const step of steps) this.#parts.stepWatch.ensure(step)
    await this.#parts.sessions.look(steps)
    return living.filter((row) => row.state === 'active' || row.state === 'paused')
  }

  /** A crash may have left the node with something else than the row says. */
  #agree(row: StoredSandbox, there: NodeSandbox): void {
    this.#parts.pauses.agree(row, there)
    this.#parts.limitChanges.agree(row, there)
  }

  /** What runs is in use; nobody expects a sign of life of what stands still. */
  async #seeAlive(row: StoredSandbox, there: NodeSandbox | undefined): Promise<void> {
    if (row.state === 'paused') this.#context.heartbeats.beat(row)
    else if (row.state === 'active' && there && there.runningCommands > 0) await this.#parts.activity.touch(row)
  }

  /** The first look of a process: waits for its ends, and records every sandbox that it keeps. */
  async adopt(): Promise<void> {
    const { audit, readiness } = this.#context
    for (const row of await this.look()) {
      const { id: sandbox, tenant, agent, name } = row
      await this.#parts.limitChanges.settle(row)
      const about = { tenant, agent, sandbox, actor: 'system', payload: { name } }
      const record = { ...about, point: 'sandbox.adopt', status: 'done' } as const
      // The chain of one tenant does not keep the server from starting: the record follows.
      if (readiness.isWaiting(tenant)) audit.note(record)
      else await requireAtStart(audit, record)
    }
    await this.settled()
  }

  /** Waits for the ends under way, however they go. */
  async settled(): Promise<void> {
    await this.#parts.sessions.settled()
    await this.#parts.pauses.settled()
    await this.#parts.limitChanges.settled()
    await Promise.allSettled(this.#ends.values())
  }

  #judge(row: StoredSandbox, node: NodeSandbox | undefined, bootId: string): EndReason | undefined {
    const pending = this.#parts.termination.pendingReason(row.id)
    if (pending) return pending
    if (row.state === 'creating') return this.#parts.creation.isCreating(row.id) ? undefined : 'create_interrupted'
    if (row.state === 'stopping') return row.endReason ?? 'terminated'
    if (this.#context.kills.covers({ tenant: row.tenant, agent: row.agent, sandbox: row.id })) return 'killed'
    const now = this.#context.clock.now()
    const reason = absence(row, node, { now, bootId }) ?? expiry(this.#parts.activity.current(row), now)
    if (reason !== 'idle' || row.onIdle !== 'pause') return reason
    this.#parts.pauses.pauseIdle(row, (then) => this.#expiry(then) === 'idle')
    return undefined
  }

  #expiry(row: StoredSandbox): EndReason | undefined {
    return expiry(this.#parts.activity.current(row), this.#context.clock.now())
  }

  /** Last known sign of life of a sandbox that is gone. */
  #aliveAt(row: StoredSandbox, there: NodeSandbox | undefined): Pick<End, 'aliveAt'> {
    if (there && runs(there)) return {}
    const { at, found } = this.#lastLook
    return { aliveAt: Math.max(row.createdAt, row.lastActiveAt, found.has(row.id) ? at : this.#context.aliveBefore) }
  }

  #end(row: StoredSandbox, end: Found): void {
    if (this.#ends.has(row.id) || this.#ends.size >= MAX_ENDS) return
    const { reason } = end
    const work = this.#finish(row, end)
      .catch((error: unknown) =>
        this.#context.log.warn('a sandbox does not end yet', { sandbox: row.id, reason, error }),
      )
      .finally(() => this.#ends.delete(row.id))
    this.#ends.set(row.id, work)
  }

  async #finish(row: StoredSandbox, end: Found): Promise<void> {
    const { audit } = this.#context
    const { termination, creation } = this.#parts
    const { reason } = end
    const mayBeUsed = reason === 'ttl' || reason === 'idle' || reason === 'paused_too_long'
    const ended = await termination.terminateIf(row.id, { ...end, actor: 'system' }, (now) => {
      if (mayBeUsed) return this.#expiry(now) !== undefined
      if (reason !== 'create_interrupted') return true
      // It may have been finished, or begun here, since its row was read.
      if (now.state !== 'creating' || creation.isCreating(row.id)) return false
      const { id: sandbox, tenant, agent, actor } = row
      audit.note({ tenant, agent, sandbox, actor, point: 'sandbox.create', status: 'unknown' })
      return true
    })
    if (ended && isEnded(ended.state) && ended.error?.code === LOST_FOR.state_damaged.code) this.#alertDamaged(ended)
  }

  /** Told once: to the log and to the webhooks of its tenant. The record of its end says it too. */
  #alertDamaged({ id: sandbox, tenant, agent }: StoredSandbox): void {
    const { log, webhooks } = this.#context
    log.error('a sandbox ended because its files on the host are damaged', { sandbox, tenant, agent })
    const reason = LOST_FOR.state_damaged.message
    webhooks.send(tenant, 'alert', { change: 'raised', sandbox, agent, resource: 'state', level: 'critical', reason })
  }

  /** No row holds it any more, or none ever did: it is not ours to keep. */
  async #removeOrphan(id: string): Promise<void> {
    const { store, log } = this.#context
    const row = await store.query((db) => findSandbox(db, id))
    if ((row && !isEnded(row.state)) || this.#ends.has(id) || this.#ends.size >= MAX_ENDS) return
    log.warn('a sandbox without a row is removed', { sandbox: id })
    const work = this.#stopOrphan(id, row)
      .catch((error: unknown) => log.warn('a sandbox without a row cannot be removed yet', { sandbox: id, error }))
      .finally(() => this.#ends.delete(id))
    this.#ends.set(id, work)
  }

  /** What another node wrote off used more than it was billed for, as is seen now. */
  async #stopOrphan(id: string, row: StoredSandbox | undefined): Promise<void> {
    const { store, dataPlane, clock } = this.#context
    const { usage } = await dataPlane.stop(id, row?.endReason ?? null)
    if (row?.error?.code === NODE_LOST.code && usage)
      await store.transaction((db) => billSandbox(db, row, { at: clock.now(), cpuMs: usage.cpuMs }))
  }
}

/** Why the data plane gave up on a sandbox, where it says so. */
function causeOf(lostFor: NodeSandbox['lostFor'], reason: EndReason): Pick<End, 'error'> {
  return reason === 'guest_lost' && lostFor ? { error: LOST_FOR[lostFor] } : {}
}

function runs({ state }: NodeSandbox): boolean {
  return state !== 'lost'
}

/** Why a sandbox that should run does not: it is not there, or only its remains are. */
function absence(
  row: StoredSandbox,
  node: NodeSandbox | undefined,
  at: { readonly now: number; readonly bootId: string },
): EndReason | undefined {
  if (node) return node.state === 'lost' ? (node.lostReason ?? 'guest_lost') : undefined
  if (at.now >= row.endsAt) return 'max_lifetime'
  return row.bootId === at.bootId ? 'guest_lost' : 'host_restarted'
}

/** Why a sandbox is over by the clock. */
function expiry(row: StoredSandbox, now: number): EndReason | undefined {
  if (now >= row.endsAt) return 'max_lifetime'
  if (row.state === 'paused') return now >= (row.pausedAt ?? now) + row.maxPausedMs ? 'paused_too_long' : undefined
  if (now >= row.expiresAt) return 'ttl'
  return now >= row.lastActiveAt + row.idleMs ? 'idle' : undefined
}
