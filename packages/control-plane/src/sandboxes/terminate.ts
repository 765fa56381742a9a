import { AirlockError, type EndReason, type ResourceUsage } from '@airlock/contract'
import { releaseReservation } from '../store/budgets.ts'
import { type CommandEnd, loseCommandsOf, type StoredCommand } from '../store/commands.ts'
import { countLiving, findSandbox, type SandboxChanges, type StoredSandbox } from '../store/sandboxes.ts'
import { endSessionsOf, type StoredSession } from '../store/sessions.ts'
import { loseStepsOf, type StepEnd, type StoredStep } from '../store/steps.ts'
import type { Queries } from '../store/engine/store.ts'
import type { Activity } from './activity.ts'
import { idleAgent } from '../agents/agent-moves.ts'
import { billSandbox } from '../spend/billing.ts'
import type { CommandWatch } from '../commands/command-watch.ts'
import type { Connections } from '../doors/connections.ts'
import type { Context } from '../app/context.ts'
import { causeOfEnd, stepErrorOfEnd } from './end-cause.ts'
import { isEnded, moveSandbox } from './lifecycle.ts'
import type { Receipts } from '../evidence/receipts.ts'

/** Why a sandbox ends, and who wants it. */
export interface End {
  readonly reason: EndReason
  readonly actor: string
  readonly requestId?: string
  readonly force?: boolean
  readonly error?: { readonly code: string; readonly message: string }
  /** Told what the kernel counted, if this end is the one that destroys it. */
  readonly onUsage?: (usage: ResourceUsage | null) => void
  /** When it was last seen, if it was gone before anybody ended it: it is billed no further. */
  readonly aliveAt?: number | undefined
}

/** An end that is under way: kept until its row is written, so that a full disk does not make us forget why. */
interface Ending extends Omit<End, 'error' | 'onUsage'> {
  readonly error: End['error'] | undefined
  destroyed: { readonly usage: ResourceUsage | null; readonly at: number } | undefined
  /** Its record was sent, though its row could not be written. */
  isNoted: boolean
}

const ABNORMAL: ReadonlySet<EndReason> = new Set([
  'guest_lost',
  'host_restarted',
  'create_failed',
  'create_interrupted',
])

interface Parts {
  readonly activity: Activity
  readonly sessionActivity: Activity
  readonly watch: CommandWatch<StoredCommand, CommandEnd>
  readonly stepWatch: CommandWatch<StoredStep, StepEnd>
  readonly receipts: Receipts
  readonly connections: Connections
}

/**
 * The one way in which sandboxes end, whatever the reason. Idempotent. It never waits for evidence and needs no room in
 * the store: what cannot be written is remembered, the sandbox is destroyed all the same, and the sweep writes the row
 * later. Only a data plane that does not answer leaves the sandbox `stopping`, until the sweep gets through to it.
 */
export class Termination {
  readonly #context: Context
  readonly #parts: Parts
  readonly #endings = new Map<string, Ending>()
  readonly #underWay = new Map<string, Promise<StoredSandbox>>()

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
  }

  /** Ends the sandbox once whatever is under way with it is over. Calls at the same time share one end. */
  async terminate(id: string, end: End): Promise<StoredSandbox> {
    const shared = this.#underWay.get(id)
    if (shared) return shared
    const mine = this.#context.turns.run(id, async () => this.terminateInTurn(id, end))
    this.#underWay.set(id, mine)
    try {
      return await mine
    } finally {
      this.#underWay.delete(id)
    }
  }

  /** Ends it if `confirm` still says so when its turn comes: a use may have come between. */
  async terminateIf(
    id: string,
    end: End,
    confirm: (row: StoredSandbox) => boolean,
  ): Promise<StoredSandbox | undefined> {
    return this.#context.turns.run(id, async () => {
      const row = await this.#context.store.query((db) => findSandbox(db, id))
      return row && (isEnded(row.state) || confirm(row)) ? this.terminateInTurn(id, end) : row
    })
  }

  /** Preconditions: the caller holds the sandbox's turn. */
  async terminateInTurn(id: string, end: End): Promise<StoredSandbox> {
    const row = await this.#context.store.query((db) => findSandbox(db, id))
    if (!row) throw new AirlockError('sandbox_not_found')
    this.#context.ephemeral.remove(id)
    if (isEnded(row.state)) return row
    const ending = this.#endings.get(id) ?? { ...end, error: errorOf(end), destroyed: undefined, isNoted: false }
    const stopping = await this.#mark(row, ending)
    await this.#context.failpoint('terminate.marked')
    if (!this.#endings.has(id)) this.#noteRequested(row, ending)
    this.#endings.set(id, ending)
    ending.destroyed ??= await this.#destroy(id, stopping.endReason ?? ending.reason)
    end.onUsage?.(ending.destroyed.usage)
    await this.#context.failpoint('terminate.destroyed')
    return this.#finish(stopping, ending)
  }

  /** Why a sandbox is ending whose row could not be written. */
  pendingReason(id: string): EndReason | undefined {
    return this.#endings.get(id)?.reason
  }

  async #mark(row: StoredSandbox, ending: Ending): Promise<StoredSandbox> {
    if (row.state === 'stopping') return row
    const changes = { endReason: ending.reason, error: ending.error ?? null }
    try {
      return await this.#context.store.transaction((db) => moveSandbox(db, row, { to: 'stopping', changes }))
    } catch (error) {
      this.#context.log.error('the end of a sandbox cannot be written, so it ends unwritten', {
        sandbox: row.id,
        error,
      })
      return row
    }
  }

  #noteRequested(row: StoredSandbox, end: Omit<End, 'error'>): void {
    const { tenant, agent, id } = row
    const { reason, actor, requestId, force } = end
    const payload = { reason, ...(requestId === undefined ? {} : { requestId }), ...(force ? { force } : {}) }
    this.#context.audit.note({
      tenant,
      agent,
      sandbox: id,
      actor,
      point: 'sandbox.terminate',
      status: 'requested',
      payload,
    })
  }

  async #destroy(id: string, reason: EndReason): Promise<NonNullable<Ending['destroyed']>> {
    await this.#parts.connections.close(id)
    const { usage } = await this.#context.dataPlane.stop(id, reason)
    return { usage, at: this.#context.clock.now() }
  }

  async #finish(row: StoredSandbox, ending: Ending): Promise<StoredSandbox> {
    const reason = row.endReason ?? ending.reason
    const to = ABNORMAL.has(reason) ? 'error' : 'stopped'
    const endedAt = ending.destroyed?.at ?? this.#context.clock.now()
    const { lastActiveAt, expiresAt } = this.#parts.activity.current(row)
    const changes = { endedAt, endReason: reason, error: row.error ?? ending.error ?? null, lastActiveAt, expiresAt }
    const usage = ending.destroyed?.usage ?? null
    const written = await this.#write(row, { to, changes, usage, aliveAt: ending.aliveAt })
    // A record that was sent before its row was written may be lost by now: the row owes it until it is acknowledged.
    if (written) ending.isNoted = false
    const ended = written ?? { ...row, ...changes, state: to }
    this.#noteEnded(ended, ending)
    return ended
  }

  #noteEnded(ended: StoredSandbox, ending: Ending): void {
    if (ending.isNoted) return
    ending.isNoted = true
    this.#parts.receipts.sandboxEnded(ended, {
      usage: ending.destroyed?.usage ?? null,
      requestId: ending.requestId ?? null,
    })
  }

  /** Everything that was held for the sandbox is let go in one transaction. Undefined when that is not possible now. */
  async #write(row: StoredSandbox, end: WritableEnd): Promise<StoredSandbox | undefined> {
    const { store, log, failpoint } = this.#context
    const written = await store
      .transaction(async (db) => writeEnd(db, row, end))
      .catch((error: unknown) =>
        log.error('a sandbox is gone but its row is not written yet', { sandbox: row.id, error }),
      )
    if (!written) return undefined
    await failpoint('terminate.row-written')
    this.#endings.delete(row.id)
    this.#parts.activity.forget(row.id)
    this.#parts.watch.sandboxEnded(row.id, written.lost)
    this.#parts.stepWatch.sandboxEnded(row.id, written.lostSteps)
    for (const session of written.sessions) {
      this.#parts.sessionActivity.forget(session.id)
      this.#parts.receipts.sessionEnded(session, null)
    }
    return written.over
  }
}

interface WritableEnd {
  readonly to: 'stopped' | 'error'
  readonly changes: SandboxChanges & { readonly endedAt: number }
  /** Null where nobody counted, or nobody knows any more. */
  readonly usage: ResourceUsage | null
  /** When it was last seen, where that is not when it ended. */
  readonly aliveAt?: number | undefined
}

interface WrittenEnd {
  readonly over: StoredSandbox
  readonly lost: readonly StoredCommand[]
  readonly lostSteps: readonly StoredStep[]
  readonly sessions: readonly StoredSession[]
}

/**
 * Lets go of everything that is held for a sandbox: its name, its place, its part of the budgets, its commands, its sessions, and its
 * agent if it was the last.
 * Precondition: in a transaction.
 */
export async function writeEnd(db: Queries, row: StoredSandbox, end: WritableEnd): Promise<WrittenEnd> {
  const stopping = row.state === 'stopping' ? row : await moveSandbox(db, row, { to: 'stopping', changes: {} })
  const over = await moveSandbox(db, stopping, end)
  const { endedAt: at } = end.changes
  await releaseReservation(db, row.id)
  // One that failed before it ran used nothing.
  if (row.isolation || end.usage)
    await billSandbox(db, row, { at: Math.min(at, end.aliveAt ?? at), cpuMs: end.usage?.cpuMs ?? null })
  const cause = causeOfEnd(over)
  const lost = await loseCommandsOf(db, row.id, { at, cause })
  const lostSteps = await loseStepsOf(db, row.id, { at, cause, error: stepErrorOfEnd(over) })
  const sessions = await endSessionsOf(db, row.id, at)
  if ((await countLiving(db, { tenant: row.tenant, agent: row.agent })) === 0)
    await idleAgent(db, row, end.changes.endedAt)
  return { over, lost, lostSteps, sessions }
}

function errorOf(end: End): { readonly code: string; readonly message: string } | undefined {
  if (end.error || !ABNORMAL.has(end.reason)) return end.error
  return { code: end.reason, message: MESSAGES[end.reason] ?? 'The sandbox ended abnormally.' }
}

const MESSAGES: Partial<Record<EndReason, string>> = {
  guest_lost: 'The sandbox broke down.',
  host_restarted: 'The host restarted.',
  create_interrupted: 'The server stopped while the sandbox was being created.',
}
