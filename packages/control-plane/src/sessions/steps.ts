import { hash } from 'node:crypto'
import { redactText, type Written } from '@airlock/audit'
import {
  AirlockError,
  type ErrorCode,
  isAirlockError,
  type RunStepBody,
  type Step,
  type StepEvent,
} from '@airlock/contract'
import { newId } from '@airlock/std'
import {
  deleteStep,
  findStep,
  findStepByKey,
  insertStep,
  listSteps,
  type StepEnd,
  type StoredStep,
} from '../store/steps.ts'
import type { CommandWatch } from '../commands/command-watch.ts'
import type { Context } from '../app/context.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import { boundTimeout, deedOf, describeError, type Governed, saying } from '../evidence/evidence.ts'
import { toStep } from '../sandboxes/nouns.ts'
import { writesOutside } from '../sandboxes/owned-sandbox.ts'
import { OpenOutputs } from '../commands/open-outputs.ts'
import { inSession, ownedSession, type Place, readableSession, usableSession } from './owned-session.ts'
import type { Sessions } from './sessions.ts'
import { type AskedEvents, stepEvents } from './step-events.ts'

/** What the evidence holds of code, besides its hash. */
const CODE_CHARACTERS = 200
const SCANNED_CHARACTERS = 4096

export interface StepRef {
  readonly session: string
  readonly step: string
}

interface Parts {
  readonly sessions: Sessions
  readonly stepWatch: CommandWatch<StoredStep, StepEnd>
}

interface Start {
  readonly codeHash: string
  readonly row: Promise<StoredStep>
}

/** Code in sessions: asked for, recorded, run at most once for each id of the caller, followed to its end. */
export class Steps {
  readonly #context: Context
  readonly #parts: Parts
  readonly #outputs = new OpenOutputs()
  /** What a call has just asked for, so that following it in the same call looks nothing up again. */
  readonly #seen = new WeakMap<Caller, { readonly place: Place; readonly row: StoredStep }>()
  /** By session and the caller's id: those who ask for the same step at once get the same one. */
  readonly #starts = new Map<string, Start>()

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
  }

  /** Resolves once the step is with the data plane, or at once when its id is known; `events` follows it. */
  async run(caller: Caller, sessionId: string, body: RunStepBody): Promise<Step> {
    const place = await usableSession(this.#context, caller, sessionId)
    // Never fails, and nobody needs it on disk before the step runs.
    void this.#parts.sessions.touch(place)
    const codeHash = hash('sha256', body.code)
    const row = await this.#once(place, { caller, body, codeHash })
    this.#seen.set(caller, { place, row })
    return this.#show(row, place)
  }

  async list(
    caller: Caller,
    session: string,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Step>> {
    const { store } = this.#context
    const place = await ownedSession(store, caller, session)
    const filter = { session, before: page.cursor, limit: page.limit + 1 }
    const rows = await store.query((db) => listSteps(db, filter))
    return toPage(rows, page.limit, (row) => this.#show(row, place))
  }

  async get(caller: Caller, of: StepRef): Promise<Step> {
    const place = await ownedSession(this.#context.store, caller, of.session)
    return this.#show(await this.#find(of), place)
  }

  async *events(caller: Caller, of: StepRef, asked: AskedEvents): AsyncGenerator<StepEvent> {
    const { store, dataPlane } = this.#context
    const seen = this.#seen.get(caller)
    const isSeen = seen?.row.id === of.step && seen.row.session === of.session
    if (!isSeen) await this.#parts.stepWatch.begun(of.step)
    const place = isSeen ? seen.place : await readableSession(this.#context, caller, of.session)
    const row = isSeen ? seen.row : await this.#find(of)
    const open = asked.from === 0 && asked.follow ? this.#outputs.take(row.id) : undefined
    const show = (shown: StoredStep) => this.#show(shown, place)
    yield* stepEvents({ store, dataPlane, watch: this.#parts.stepWatch, row, show, open }, asked)
  }

  async #once(place: Place, of: Asked): Promise<StoredStep> {
    const { stepId } = of.body
    if (stepId === undefined) return this.#start(place, of)
    const session = place.session.id
    const key = `${session} ${stepId}`
    const known = await this.#context.store.query((db) => findStepByKey(db, { session, stepId }))
    // From here to the next await nobody else can begin it.
    const starting = this.#starts.get(key)
    if (starting) return this.#sameCode(starting.codeHash, of) && starting.row
    if (known) return this.#sameCode(known.codeHash, of) && known
    const row = this.#start(place, of).finally(() => this.#starts.delete(key))
    this.#starts.set(key, { codeHash: of.codeHash, row })
    return row
  }

  #sameCode(codeHash: string, of: Asked): true {
    if (codeHash === of.codeHash) return true
    throw new AirlockError('step_mismatch')
  }

  async #start(place: Place, of: Asked): Promise<StoredStep> {
    const { row, deed, timeoutMs } = await this.#pass(place, of)
    return this.#parts.stepWatch.whileStarting(row.id, async () => {
      const { first, durable } = await this.#take(row, deed)
      if (first.id !== row.id) return this.#sameCode(first.codeHash, of) && first
      try {
        if (writesOutside(place.sandbox)) await durable
        await this.#give(row, { ...of.body, timeoutMs })
      } catch (error) {
        await this.#forget(row)
        this.#context.audit.note({ ...deed, status: 'failed', error: describeError(error) })
        throw error
      }
      // It runs, and is followed to its end; nobody hears of it before its record is on disk.
      await durable
      return row
    })
  }

  /** What a policy bounds is bounded here, and on record. */
  async #pass(
    place: Place,
    of: Asked,
  ): Promise<{ readonly row: StoredStep; readonly deed: Governed; readonly timeoutMs: number }> {
    const { clock, guardian, ephemeral } = this.#context
    const { code, timeoutMs: askedMs } = of.body
    const row = newRow(place, { ...of, now: clock.now() })
    const asked = deedOf(of.caller, place.sandbox, { point: 'step.run', payload: requestOf(row, place, of.body) })
    const env = Object.keys(of.body.env)
    const about = { kind: 'code', runtime: place.session.runtime, code, env, timeoutMs: askedMs } as const
    const passed = await guardian.pass(of.caller, asked, about)
    const { stepId: _stepId, ...step } = of.body
    ephemeral.append(place.sandbox.id, { runtime: place.session.runtime, step })
    const timeoutMs = boundTimeout(askedMs, passed.decision)
    return { row: { ...row, decision: passed.decision }, deed: saying(passed, { timeoutMs }), timeoutMs }
  }

  /**
   * The record and the row, at the same time: neither needs the other, and nothing runs before both are written. Answers the
   * step that has the caller's id: this one, or an earlier one.
   */
  async #take(row: StoredStep, deed: Governed): Promise<Taken> {
    const { audit } = this.#context
    const [recorded, written] = await Promise.allSettled([this.#record(deed), this.#insert(row)])
    if (written.status === 'fulfilled' && written.value.id !== row.id) {
      audit.note({ ...deed, status: 'denied', error: DUPLICATE })
      return { first: written.value, durable: Promise.resolve() }
    }
    if (written.status === 'rejected') {
      if (recorded.status === 'fulfilled')
        audit.note({ ...deed, status: 'failed', error: describeError(written.reason) })
      throw written.reason
    }
    if (recorded.status === 'rejected') {
      await this.#forget(row)
      throw recorded.reason
    }
    return { first: row, durable: recorded.value.durable }
  }

  async #record(deed: Governed): Promise<Written> {
    const { audit, failpoint } = this.#context
    const written = await audit.requireWritten({ ...deed, status: 'requested' })
    await failpoint('step.recorded')
    return written
  }

  async #insert(row: StoredStep): Promise<StoredStep> {
    const { store, failpoint } = this.#context
    const { session, stepId } = row
    // The host takes the session along, and with it everything that a lost row could let run twice.
    try {
      const isNew = await store.quickly((db) => insertStep(db, row))
      await failpoint('step.row-written')
      return isNew ? row : ((await store.query((db) => findStepByKey(db, { session, stepId }))) ?? row)
    } catch (error) {
      throw store.isMissing(error) ? new AirlockError('session_expired', undefined, { cause: error }) : error
    }
  }

  /** Throws when it certainly does not run; when nobody can say, it is followed like one that does. */
  async #give(row: StoredStep, body: RunStepBody): Promise<void> {
    const { store, dataPlane, failpoint } = this.#context
    const { id, sandbox, session, maxOutputBytes } = row
    const { code, env, stdin, timeoutMs } = body
    const spec = { id, code, env, stdin, timeoutMs, maxOutputBytes }
    const abort = new AbortController()
    const letGo = () => {
      abort.abort()
      void this.#parts.stepWatch.watch(row)
    }
    try {
      const output = await dataPlane.step({ sandbox, session }, spec, abort.signal)
      await failpoint('step.running')
      this.#outputs.hold(id, output, letGo)
    } catch (error) {
      if (!isUncertain(error)) await inSession(store, session, () => Promise.reject(error))
      this.#context.log.warn('whether a step runs is not known yet', { step: id, error })
    }
  }

  /** It never began, and its id is free again. */
  async #forget(row: StoredStep): Promise<void> {
    await this.#context.store
      .query((db) => deleteStep(db, row.id))
      .catch((error: unknown) => this.#context.log.warn('a refused step stays in the store', { row: row.id, error }))
  }

  async #find(of: StepRef): Promise<StoredStep> {
    const row = await this.#context.store.query((db) => findStep(db, of))
    if (!row) throw new AirlockError('step_not_found')
    return row
  }

  #show(row: StoredStep, place: Place): Step {
    return toStep(row, place, this.#parts.stepWatch.isStarting(row.id))
  }
}

interface Taken {
  /** The step that has the caller's id. */
  readonly first: StoredStep
  readonly durable: Promise<void>
}

interface Asked {
  readonly caller: Caller
  readonly body: RunStepBody
  readonly codeHash: string
}

const DUPLICATE = { code: 'step_mismatch', message: 'The id belongs to an earlier step, whose result was answered.' }

/** Nobody answered: it may run, or not. */
function isUncertain(error: unknown): boolean {
  if (!isAirlockError(error) || !UNCERTAIN.has(error.code)) return false
  const { cause } = error
  // Nobody listened, so nobody heard it.
  return !(cause instanceof Error && 'code' in cause && (cause.code === 'ECONNREFUSED' || cause.code === 'ENOENT'))
}

const UNCERTAIN: ReadonlySet<ErrorCode> = new Set(['data_plane_unavailable', 'guest_lost', 'timeout'])

function newRow(place: Place, of: Asked & { readonly now: number }): StoredStep {
  const { session } = place
  const id = newId('stp', of.now)
  return {
    id,
    tenant: session.tenant,
    agent: session.agent,
    sandbox: session.sandbox,
    session: session.id,
    stepId: of.body.stepId ?? id,
    codeHash: of.codeHash,
    status: 'accepted',
    error: null,
    cause: null,
    restarted: false,
    truncated: false,
    outputBytes: 0,
    maxOutputBytes: of.body.maxOutputBytes,
    usage: null,
    startedAt: of.now,
    endedAt: null,
    actor: of.caller.principal.actor,
    recorded: false,
    decision: null,
  }
}

/** What is recorded of a request: neither the values of its environment and its stdin nor all of its code. */
function requestOf(row: StoredStep, { session }: Place, { code, env, timeoutMs }: RunStepBody) {
  const head = redactText(code.slice(0, SCANNED_CHARACTERS)).slice(0, CODE_CHARACTERS).toWellFormed()
  return {
    step: row.id,
    session: row.session,
    runtime: session.runtime,
    stepId: row.stepId,
    code: { sha256: row.codeHash, bytes: Buffer.byteLength(code), head },
    env: Object.keys(env),
    timeoutMs,
  }
}
