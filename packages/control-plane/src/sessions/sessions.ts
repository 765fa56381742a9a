import {
  AirlockError,
  type CreateSandboxBody,
  createSandboxBody,
  type CreateSessionBody,
  isAirlockError,
  SESSION_TEMPLATES,
  type Session,
  type SessionState,
} from '@airlock/contract'
import { newId } from '@airlock/std'
import { findSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import {
  endSession,
  findSession,
  insertSession,
  listDueSessions,
  listOutlived,
  listSessions,
  type SessionEnd,
  type StoredSession,
  updateRuntime,
} from '../store/sessions.ts'
import { findStep, type StoredStep } from '../store/steps.ts'
import type { Activity } from '../sandboxes/activity.ts'
import type { Context } from '../app/context.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import type { Creation } from '../sandboxes/create.ts'
import { deedOf, describeError, doRecorded, type Governed, saying } from '../evidence/evidence.ts'
import { toSession } from '../sandboxes/nouns.ts'
import { inSandbox, mayUseAgent, usableSandbox } from '../sandboxes/owned-sandbox.ts'
import { inSession, ownedSession, type Place, usableSession } from './owned-session.ts'
import type { Receipts } from '../evidence/receipts.ts'
import type { Termination } from '../sandboxes/terminate.ts'

const BATCH = 64

export interface ListSessions {
  readonly state?: SessionState | 'all' | undefined
  readonly sandbox?: string | undefined
  readonly agent?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

interface Parts {
  readonly activity: Activity
  readonly sessionActivity: Activity
  readonly creation: Creation
  readonly termination: Termination
  readonly receipts: Receipts
}

interface End extends Omit<SessionEnd, 'endedAt'> {
  readonly requestId: string | null
}

/** Interpreters that remember: opened in a sandbox, used, and ended by their time, by their caller or with the sandbox. */
export class Sessions {
  readonly #context: Context
  readonly #parts: Parts
  readonly #opening = new Set<string>()
  readonly #ends = new Map<string, Promise<unknown>>()

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
  }

  /** In a sandbox of the caller, or in a new one, which then ends with it, and at once when it cannot be opened. */
  async create(caller: Caller, body: CreateSessionBody): Promise<Session> {
    const { log } = this.#context
    if (body.sandbox !== undefined) {
      const sandbox = await usableSandbox(this.#context, caller, body.sandbox)
      const passed = await this.#pass(caller, body, sandbox)
      return toSession(await this.#open(sandbox, { caller, body, ownsSandbox: false, passed }))
    }
    const passed = await this.#pass(caller, body, await this.#futureSandbox(caller, body))
    const sandbox = await this.#makeSandbox(caller, body)
    try {
      return toSession(await this.#open(sandbox, { caller, body, ownsSandbox: true, passed }))
    } catch (error) {
      const end = { reason: 'terminated', actor: 'system', error: describeError(error) } as const
      await this.#parts.termination
        .terminate(sandbox.id, end)
        .catch((cause: unknown) => log.warn('a sandbox without its session is left to the sweep', { cause }))
      throw error
    }
  }

  /** Newest first, of the agents that the caller may use. */
  async list(caller: Caller, asked: ListSessions): Promise<Page<Session>> {
    const { principal } = caller
    if (asked.agent !== undefined && !mayUseAgent(principal, asked.agent)) return { items: [], nextCursor: null }
    const filter = {
      tenant: principal.tenant,
      agents: asked.agent === undefined ? principal.agents : [asked.agent],
      states: statesOf(asked.state),
      sandbox: asked.sandbox,
      before: asked.cursor,
      limit: asked.limit + 1,
    }
    const rows = await this.#context.store.query((db) => listSessions(db, filter))
    return toPage(rows, asked.limit, (row) => toSession(this.#parts.sessionActivity.current(row)))
  }

  async get(caller: Caller, id: string): Promise<Session> {
    const { session } = await ownedSession(this.#context.store, caller, id)
    return toSession(this.#parts.sessionActivity.current(session))
  }

  /** It reduces, so it does not wait for evidence. */
  async interrupt(caller: Caller, id: string, step?: string): Promise<void> {
    const { audit, clock, store } = this.#context
    const { session, sandbox } = await usableSession(this.#context, caller, id)
    // It reduces, so it is let also where nothing else is.
    this.#context.ephemeral.disturb(sandbox.id, true)
    const startedAt = clock.now()
    const deed = deedOf(caller, sandbox, {
      point: 'session.interrupt',
      payload: { session: id, ...(step !== undefined && { step }) },
    })
    audit.note({ ...deed, status: 'requested' })
    try {
      await inSession(store, id, async () => this.#interrupt(session, step))
      audit.note({ ...deed, status: 'done', durationMs: clock.now() - startedAt })
    } catch (error) {
      audit.note({ ...deed, status: 'failed', error: describeError(error) })
      throw error
    }
  }

  /** One step alone is asked like a command; that it has just ended is as good. */
  async #interrupt(session: StoredSession, step: string | undefined): Promise<void> {
    const { dataPlane, store } = this.#context
    if (step === undefined) return dataPlane.interruptSession(refOf(session))
    if (!(await store.query((db) => findStep(db, { session: session.id, step }))))
      throw new AirlockError('step_not_found')
    await dataPlane.signal({ sandbox: session.sandbox, command: step }, 'SIGINT').catch((error: unknown) => {
      const isOver = isAirlockError(error) && (error.code === 'command_ended' || error.code === 'command_not_found')
      if (!isOver) throw error
    })
  }

  async restart(caller: Caller, id: string): Promise<Session> {
    const { guardian, dataPlane, store, turns } = this.#context
    const place = await usableSession(this.#context, caller, id)
    const asked = deedOf(caller, place.sandbox, { point: 'session.restart', payload: { session: id } })
    const deed = await guardian.pass(caller, asked)
    this.#context.ephemeral.disturb(place.sandbox.id)
    await this.touch(place)
    return turns.run(id, async () =>
      doRecorded(this.#context, deed, async () => {
        const node = await inSession(store, id, () => dataPlane.restartSession(refOf(place.session)))
        const row = await store.query((db) => updateRuntime(db, id, node))
        if (!row) throw new AirlockError('session_expired')
        const value = toSession(this.#parts.sessionActivity.current(row))
        return { value, payload: { restarts: row.restarts } }
      }),
    )
  }

  /** Idempotent. Never waits for evidence. */
  async terminate(caller: Caller, id: string): Promise<Session> {
    const { session } = await ownedSession(this.#context.store, caller, id)
    const { requestId } = caller
    return toSession(await this.#end(session, { state: 'terminated', endReason: 'terminated', requestId }))
  }

  /** A use of a session is a use of its sandbox, which lives at least as long. */
  async touch({ session, sandbox }: Place): Promise<void> {
    const { activity, sessionActivity } = this.#parts
    const { ttlMs } = session
    await activity.touch({ ...sandbox, ttlMs: Math.max(sandbox.ttlMs, ttlMs) })
    await sessionActivity.touch({ ...session, idleMs: ttlMs, endsAt: sandbox.endsAt })
  }

  /** For the sweep: what runs is in use, what is over ends, and so does a sandbox that outlived the session it was for. */
  async look(running: readonly StoredStep[]): Promise<void> {
    const { store, node, clock } = this.#context
    for (const id of new Set(running.map(({ session }) => session))) {
      const place = await store.query(async (db) => {
        const session = await findSession(db, id)
        const sandbox = session && (await findSandbox(db, session.sandbox))
        return sandbox && { session, sandbox }
      })
      if (place?.sandbox.state === 'active') await this.touch(place)
    }
    const now = clock.now()
    const due = { node: node.id, now, limit: BATCH }
    for (const row of await store.query((db) => listDueSessions(db, due))) this.#judge(row, now)
    for (const row of await store.query((db) => listOutlived(db, due)))
      this.#begin(row, () => this.#parts.termination.terminate(row.sandbox, sandboxEnd(row)))
  }

  /** Waits for the ends under way, however they go. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#ends.values())
  }

  #judge(row: StoredSession, now: number): void {
    if (this.#opening.has(row.id)) return
    if (row.runtimeVersion === '')
      this.#begin(row, () => this.#end(row, { state: 'terminated', endReason: 'create_failed', requestId: null }))
    else if (this.#parts.sessionActivity.current(row).expiresAt <= now)
      this.#begin(row, () => this.#end(row, { state: 'expired', endReason: 'ttl', requestId: null }))
  }

  #begin(row: StoredSession, end: () => Promise<unknown>): void {
    if (this.#ends.has(row.id) || this.#ends.size >= BATCH) return
    const work = end()
      .catch((error: unknown) => this.#context.log.warn('a session does not end yet', { session: row.id, error }))
      .finally(() => this.#ends.delete(row.id))
    this.#ends.set(row.id, work)
  }

  /** Asked before a sandbox is made for it. */
  async #pass(
    caller: Caller,
    body: CreateSessionBody,
    sandbox: { readonly id: string | null; readonly tenant: string; readonly agent: string },
  ): Promise<Governed> {
    const payload = { runtime: body.runtime, labels: body.labels, env: Object.keys(body.env) }
    const asked = deedOf(caller, sandbox, { point: 'session.create', payload })
    return this.#context.guardian.pass(caller, asked)
  }

  async #futureSandbox(caller: Caller, body: CreateSessionBody) {
    const { agent } = await this.#parts.creation.admit(caller, sandboxFor(body))
    return { id: null, tenant: caller.principal.tenant, agent }
  }

  async #makeSandbox(caller: Caller, body: CreateSessionBody): Promise<StoredSandbox> {
    const { id } = await this.#parts.creation.create(caller, sandboxFor(body))
    const row = await this.#context.store.query((db) => findSandbox(db, id))
    if (!row) throw new AirlockError('sandbox_ended')
    return row
  }

  /** Evidence, row, interpreter, and what it calls itself: only then is anybody told of it. */
  async #open(
    sandbox: StoredSandbox,
    of: {
      readonly caller: Caller
      readonly body: CreateSessionBody
      readonly ownsSandbox: boolean
      readonly passed: Governed
    },
  ): Promise<StoredSession> {
    const { audit, clock, ephemeral } = this.#context
    const row = newRow(sandbox, { ...of, now: clock.now() })
    const { runtime, cwd, env } = of.body
    ephemeral.openSession(sandbox.id, { session: { runtime, cwd, env } })
    const deed = saying(of.passed, { session: row.id }, sandbox.id)
    await audit.require({ ...deed, status: 'requested' })
    this.#opening.add(row.id)
    try {
      const opened = await this.#openRecorded(row, of.body)
      const { runtimeVersion } = opened
      const durationMs = clock.now() - row.createdAt
      audit.note({ ...deed, status: 'done', durationMs, payload: { ...deed.payload, runtimeVersion } })
      return opened
    } catch (error) {
      audit.note({ ...deed, status: 'failed', error: describeError(error) })
      await this.#giveUp(row)
      throw error
    } finally {
      this.#opening.delete(row.id)
    }
  }

  async #openRecorded(row: StoredSession, body: CreateSessionBody): Promise<StoredSession> {
    const { store, dataPlane } = this.#context
    await store.transaction(async (db) => {
      // Its end takes the sessions along, so none may come after it.
      if ((await findSandbox(db, row.sandbox))?.state !== 'active') throw new AirlockError('sandbox_ended')
      await insertSession(db, row)
    })
    const { id, runtime, sandbox } = row
    const spec = { id, runtime, cwd: body.cwd, env: body.env }
    const node = await inSandbox(store, sandbox, () => dataPlane.openSession(sandbox, spec)).catch(throwUnreachable)
    const opened = await store.query((db) =>
      updateRuntime(db, id, { restarts: node.restarts, runtimeVersion: node.runtimeVersion || runtime }),
    )
    if (!opened) throw new AirlockError('sandbox_ended')
    return opened
  }

  /** What cannot be undone now is found by the sweep: a row without an interpreter. */
  async #giveUp(row: StoredSession): Promise<void> {
    const { store, dataPlane, clock, log } = this.#context
    const end = { state: 'terminated', endReason: 'create_failed', endedAt: clock.now() } as const
    try {
      await dataPlane.closeSession(refOf(row))
      await store.transaction((db) => endSession(db, row.id, end))
    } catch (error) {
      if (!isGone(error)) log.warn('a session that was not opened is left to the sweep', { session: row.id, error })
    }
  }

  /** The interpreter goes first, or the sandbox that was made for it last; the first end of the row counts. */
  async #end(row: StoredSession, { requestId, ...end }: End): Promise<StoredSession> {
    const { store, clock, turns } = this.#context
    const { receipts, sessionActivity, termination } = this.#parts
    return turns.run(row.id, async () => {
      const now = (await store.query((db) => findSession(db, row.id))) ?? row
      if (now.state === 'active' && !now.ownsSandbox) await this.#close(now)
      const { lastActiveAt, expiresAt } = sessionActivity.current(now)
      const written = { ...end, endedAt: clock.now(), lastActiveAt, expiresAt }
      const ended = await store.transaction((db) => endSession(db, row.id, written))
      if (ended) receipts.sessionEnded(ended, requestId)
      sessionActivity.forget(row.id)
      if (now.ownsSandbox) await termination.terminate(now.sandbox, sandboxEnd({ ...now, ...end }))
      return ended ?? (await store.query((db) => findSession(db, row.id))) ?? now
    })
  }

  async #close(row: StoredSession): Promise<void> {
    try {
      await this.#context.dataPlane.closeSession(refOf(row))
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
}

function newRow(
  sandbox: StoredSandbox,
  of: {
    readonly caller: Caller
    readonly body: CreateSessionBody
    readonly ownsSandbox: boolean
    readonly now: number
  },
): StoredSession {
  const { body, now } = of
  return {
    id: newId('ses', now),
    tenant: sandbox.tenant,
    agent: sandbox.agent,
    sandbox: sandbox.id,
    ownsSandbox: of.ownsSandbox,
    runtime: body.runtime,
    runtimeVersion: '',
    state: 'active',
    labels: body.labels,
    ttlMs: body.ttlMs,
    restarts: 0,
    createdAt: now,
    lastActiveAt: now,
    expiresAt: Math.min(now + body.ttlMs, sandbox.endsAt),
    endedAt: null,
    endReason: null,
    actor: of.caller.principal.actor,
    recorded: false,
  }
}

/** The sandbox that is made for a session lives as long as the session may rest. */
function sandboxFor({ create, runtime, ttlMs }: CreateSessionBody): CreateSandboxBody {
  const asked = create ?? createSandboxBody.parse({ template: SESSION_TEMPLATES[runtime] })
  return { ...asked, ttlMs: Math.max(asked.ttlMs, ttlMs), idleMs: Math.max(asked.idleMs, ttlMs) }
}

function sandboxEnd({ endReason }: Pick<StoredSession, 'endReason'>) {
  return { reason: endReason === 'ttl' ? 'ttl' : 'terminated', actor: 'system' } as const
}

function refOf({ id, sandbox }: StoredSession): { readonly sandbox: string; readonly session: string } {
  return { sandbox, session: id }
}

function statesOf(asked: ListSessions['state']): readonly SessionState[] {
  if (asked === 'all') return ['active', 'expired', 'terminated']
  return [asked ?? 'active']
}

/** Its sandbox is gone or going, and takes the interpreter along. */
function isGone(error: unknown): boolean {
  return isAirlockError(error) && ['sandbox_not_found', 'sandbox_not_active', 'guest_lost'].includes(error.code)
}

function throwUnreachable(cause: unknown): never {
  if (!isAirlockError(cause) || cause.code !== 'data_plane_unavailable') throw cause
  throw new AirlockError('runtime_unreachable', undefined, { cause })
}
