import { hash } from 'node:crypto'
import { redactText, type Written } from '@airlock/audit'
import { AirlockError, type RunStepBody, type Step, type StepEvent } from '@airlock/contract'
import { newId } from '@airlock/std'
import type { OutputItem } from '@airlock/wire'
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
import { boundTimeout, deedOf, type Governed, saying } from '../evidence/evidence.ts'
import { toStep } from '../sandboxes/nouns.ts'
import { type Begun, type OpenOutput, RecordedRuns, type RunHandle } from '../commands/recorded-run.ts'
import { writesOutside } from '../sandboxes/owned-sandbox.ts'
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
  readonly begun: Promise<Begun<StoredStep>>
}

/** Code in sessions: asked for, recorded, run at most once for each id of the caller, followed to its end. */
export class Steps {
  readonly #context: Context
  readonly #parts: Parts
  readonly #runs: RecordedRuns<StoredStep, StepEnd>
  /** By session and the caller's id: those who ask for the same step at once get the same one. */
  readonly #starts = new Map<string, Start>()

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
    this.#runs = new RecordedRuns(context, parts.stepWatch)
  }

  /**
   * Resolves once the step is with the data plane and its record on disk, or at once when its id is known. It is followed to its end,
   * by the caller until `follow` aborts.
   */
  async run(
    caller: Caller,
    sessionId: string,
    asked: RunStepBody & { readonly follow?: AbortSignal },
  ): Promise<RunHandle<Step, StepEvent>> {
    const { follow, ...body } = asked
    const place = await usableSession(this.#context, caller, sessionId)
    // Never fails, and nobody needs it on disk before the step runs.
    void this.#parts.sessions.touch(place)
    const codeHash = hash('sha256', body.code)
    const { row, open } = await this.#once(place, { caller, body, codeHash, follow })
    const reading = { from: 0, follow: true, signal: follow ?? new AbortController().signal }
    return { noun: this.#show(row, place), events: stepEvents(this.#followed(row, place, open), reading) }
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
    await this.#parts.stepWatch.begun(of.step)
    const place = await readableSession(this.#context, caller, of.session)
    yield* stepEvents(this.#followed(await this.#find(of), place, undefined), asked)
  }

  async #once(place: Place, of: Asked): Promise<Begun<StoredStep>> {
    const { stepId } = of.body
    if (stepId === undefined) return this.#start(place, of)
    const session = place.session.id
    const key = `${session} ${stepId}`
    const known = await this.#context.store.query((db) => findStepByKey(db, { session, stepId }))
    // From here to the next await nobody else can begin it.
    const starting = this.#starts.get(key)
    if (starting) return this.#same(starting.codeHash, of, (await starting.begun).row)
    if (known) return this.#same(known.codeHash, of, known)
    const begun = this.#start(place, of).finally(() => this.#starts.delete(key))
    this.#starts.set(key, { codeHash: of.codeHash, begun })
    return begun
  }

  /** Only who starts a step follows it over the call that gave it. */
  #same(codeHash: string, of: Asked, row: StoredStep): Begun<StoredStep> {
    if (codeHash !== of.codeHash) throw new AirlockError('step_mismatch')
    return { row, open: undefined }
  }

  async #start(place: Place, of: Asked): Promise<Begun<StoredStep>> {
    const { row, deed, timeoutMs } = await this.#pass(place, of)
    const { store } = this.#context
    const begun = await this.#runs.begin(
      {
        row,
        deed,
        record: async () => this.#record(deed),
        insert: async () => this.#insert(row),
        forget: async () => store.query((db) => deleteStep(db, row.id)),
        waitsForDisk: writesOutside(place.sandbox),
        give: async (letGo) => this.#give(row, { ...of.body, timeoutMs }, letGo),
        explain: async (error) => this.#explain(row.session, error),
      },
      of.follow,
    )
    return begun.row === row ? begun : this.#same(begun.row.codeHash, of, begun.row)
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
    const isApproved = passed.decision.rules.some(({ policy }) => policy === 'approval')
    ephemeral.step(place.sandbox.id, { runtime: place.session.runtime, step }, isApproved)
    const timeoutMs = boundTimeout(askedMs, passed.decision)
    return { row: { ...row, decision: passed.decision }, deed: saying(passed, { timeoutMs }), timeoutMs }
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

  async #give(row: StoredStep, body: RunStepBody, letGo: AbortSignal): Promise<AsyncIterable<OutputItem>> {
    const { dataPlane, failpoint } = this.#context
    const { id, sandbox, session, maxOutputBytes } = row
    const { code, env, stdin, timeoutMs } = body
    const output = await dataPlane.step(
      { sandbox, session },
      { id, code, env, stdin, timeoutMs, maxOutputBytes },
      letGo,
    )
    await failpoint('step.running')
    return output
  }

  async #explain(session: string, cause: unknown): Promise<unknown> {
    const thrown = async () => {
      throw cause
    }
    return inSession(this.#context.store, session, thrown).catch((meant: unknown) => meant)
  }

  #followed(row: StoredStep, place: Place, open: OpenOutput | undefined) {
    const { store, dataPlane } = this.#context
    const show = (shown: StoredStep) => this.#show(shown, place)
    return { store, dataPlane, watch: this.#parts.stepWatch, row, show, open }
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

interface Asked {
  readonly caller: Caller
  readonly body: RunStepBody
  readonly codeHash: string
  readonly follow: AbortSignal | undefined
}

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
