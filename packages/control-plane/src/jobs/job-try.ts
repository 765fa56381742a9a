import { dirname } from 'node:path'
import {
  AirlockError,
  type Command,
  type CommandEvent,
  type EndCause,
  type JobArtifacts,
  type ErrorCode,
  isAirlockError,
  JOB_PROGRAMS,
  type JobProvenance,
  type ResourceUsage,
  type SubmitJobBody,
} from '@airlock/contract'
import { newId, sleep } from '@airlock/std'
import type { Caller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import type { EventOutput } from '../commands/command-events.ts'
import type { Commands } from '../commands/commands.ts'
import { deedOf, describeError, doRecorded } from '../evidence/evidence.ts'
import type { Creation } from '../sandboxes/create.ts'
import type { Artifacts } from '../artifacts/artifacts.ts'
import type { Files } from '../sandboxes/files.ts'
import { isEnded } from '../sandboxes/lifecycle.ts'
import { toCommand } from '../sandboxes/nouns.ts'
import type { Termination } from '../sandboxes/terminate.ts'
import { findCommand, type StoredCommand } from '../store/commands.ts'
import { changeRunningJob, findJob, type JobChanges, type StoredJob } from '../store/jobs.ts'
import { findSandbox } from '../store/sandboxes.ts'
import { callerOf, submitterOf } from './authority.ts'
import { collectOfTry } from './collect-job.ts'
import { isTriedAgain, type JobEnds, type Outcome } from './job-ends.ts'
import { outputSoFar, runOutcome } from '../runs/run-outcome.ts'
import type { RunOutput } from '../runs/run-output.ts'
import { armSoftStop } from '../runs/soft-stop.ts'
import type { JobFeed } from './job-feed.ts'
import { JobLogWriter } from './job-log.ts'
import { commandFor, sandboxFor } from './job-nouns.ts'

/** Why a try is broken off: somebody canceled the job, this process stops, or another node judged it. */
export type BreakOff = 'canceled' | 'stopping' | 'taken'

export interface TryOf {
  readonly job: StoredJob
  readonly broken: AbortController
  /** Told when its command has begun. */
  readonly onBegun: () => void
}

export interface TryParts {
  readonly creation: Pick<Creation, 'create'>
  readonly commands: Pick<Commands, 'run' | 'allEvents' | 'signal'>
  readonly files: Pick<Files, 'write' | 'operate'>
  readonly artifacts: Pick<Artifacts, 'collectOfJob' | 'read' | 'assertReadable'>
  readonly termination: Pick<Termination, 'terminate'>
  readonly ends: JobEnds
  readonly feed: JobFeed
}

const RETRY_MS = 250

/** Refusals that pass: nothing has begun, and the job waits on. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'budget_exhausted',
  'capacity_exhausted',
  'host_disk_full',
  'data_plane_unavailable',
  'door_unavailable',
  'evidence_unavailable',
  'evidence_full',
  'store_unavailable',
  'not_ready',
  'timeout',
  'too_many_requests',
  'wrong_node',
])
/** Failures of the host and not of the request: another try may go better. */
const OF_HOST: ReadonlySet<ErrorCode> = new Set(['start_failed', 'guest_lost', 'sandbox_ended', 'outcome_unknown'])
const ENDED_BY_ORDER: ReadonlySet<EndCause> = new Set(['killed_by_policy'])

/** How a try came out: it ended the job, or nothing of it ran. */
export type TryResult =
  | { readonly kind: 'over' }
  | { readonly kind: 'waits'; readonly why: ErrorCode }
  | { readonly kind: 'left' }

/**
 * One try of a job: a sandbox, its files, its command, the log, the end. Every id is in the row before the thing is made, so that
 * whoever comes after a crash finds everything, and knows whether the command can have begun.
 */
export class JobTry {
  readonly #context: Context
  readonly #parts: TryParts
  readonly #broken: AbortController
  readonly #onBegun: () => void
  #job: StoredJob
  #usage: ResourceUsage | null = null
  /** What the program of a run has said so far. */
  #events: RunOutput | undefined

  constructor(context: Context, parts: TryParts, of: TryOf) {
    this.#context = context
    this.#parts = parts
    this.#job = of.job
    this.#broken = of.broken
    this.#onBegun = of.onBegun
  }

  /** Never throws. */
  async run(): Promise<TryResult> {
    try {
      return await this.#settle(await this.#outcome())
    } catch (error) {
      return this.#stopped(error)
    }
  }

  async #outcome(): Promise<Outcome> {
    const { store } = this.#context
    if (this.#job.cancelAt !== null) this.#broken.abort('canceled' satisfies BreakOff)
    this.#assertGoesOn()
    // What has begun goes on as whom it began.
    const caller = this.#job.command === null ? await callerOf(this.#context, this.#job) : submitterOf(this.#job)
    if (!this.#job.hasResult) {
      if (this.#job.command === null) await this.#begin(caller)
      this.#onBegun()
      const command = await this.#follow(caller)
      const result = await this.#resultOf(command)
      const artifacts = await this.#collect(caller, { ...this.#job, ...result })
      await this.#change({ ...result, artifacts, hasResult: true })
      await this.#context.failpoint('job.result-written')
    }
    const known = (await store.query((db) => findJob(db, this.#job.id))) ?? this.#job
    return known.run ? runOutcome(store, known, await this.#commandRow()) : outcomeOf(known)
  }

  /** From the sandbox to the command. What fails here, fails before the command has begun. */
  async #begin(caller: Caller): Promise<void> {
    const { guardian } = this.#context
    const { id: job, tenant, agent, tries } = this.#job
    const body = this.#body()
    const deed = deedOf(caller, { id: null, tenant, agent }, { point: 'job.start', payload: { job, attempt: tries } })
    await doRecorded(this.#context, await guardian.pass(caller, deed), async () => {
      // What is on another node is not here: that one takes the job.
      for (const { artifact } of body.inputs) await this.#parts.artifacts.assertReadable(caller, artifact)
      const sandbox = await this.#makeSandbox(caller, body)
      await this.#writeFiles(caller, sandbox, body)
      // Their own records name sandbox and command, under the id of the job.
      return { value: await this.#startCommand(caller, sandbox, body) }
    })
  }

  async #makeSandbox(caller: Caller, body: SubmitJobBody): Promise<string> {
    const { clock, failpoint } = this.#context
    const { id: job, agent, run } = this.#job
    // One of an earlier life, in which nothing has begun.
    await this.#tearDown()
    const sandbox = newId('sbx', clock.now())
    await this.#change({ sandbox })
    await failpoint('job.sandbox-named')
    await this.#parts.creation.create(caller, sandboxFor(body, { agent, job, run }), sandbox)
    await failpoint('job.sandbox-made')
    this.#assertGoesOn()
    return sandbox
  }

  async #writeFiles(caller: Caller, sandbox: string, body: SubmitJobBody): Promise<void> {
    const { files, artifacts } = this.#parts
    const code = body.language === undefined ? [] : [codeFile(JOB_PROGRAMS[body.language].file, body.code ?? '')]
    const write = async (path: string, bytes: AsyncIterable<Buffer>) => {
      const directory = dirname(path)
      if (directory !== '.' && directory !== '/')
        await files.operate(caller, sandbox, { op: 'file.mkdir', path: directory, parents: true })
      await files.write(caller, sandbox, { path, append: false, bytes })
      this.#assertGoesOn()
    }
    for (const { path, artifact } of body.inputs)
      await write(path, await artifacts.read(caller, artifact, this.#broken.signal))
    for (const { path, base64 } of [...body.files, ...code]) await write(path, once(Buffer.from(base64, 'base64')))
    await this.#context.failpoint('job.files-written')
  }

  /** Writes the id of the command first: after a crash it says that the command may have begun. */
  async #startCommand(caller: Caller, sandbox: string, body: SubmitJobBody): Promise<void> {
    const { clock, failpoint } = this.#context
    const command = newId('cmd', clock.now())
    await this.#change({ command })
    await failpoint('job.command-named')
    await this.#parts.commands.run(caller, sandbox, { ...commandFor(body, this.#job.run), id: command })
    await failpoint('job.command-begun')
  }

  /** Its output into the log, to its end, over restarts of the data plane. */
  async #follow(caller: Caller): Promise<Command & { readonly isWhole: boolean }> {
    const { store } = this.#context
    const { logBytes, logStart, run } = this.#job
    using _stop = run ? await this.#armSoftStop(caller) : undefined
    // A run whose events are not valid ends at once: what was read before a crash counts.
    this.#events = run ? await outputSoFar(store, this.#job) : undefined
    const writer = new JobLogWriter({ context: { store }, feed: this.#parts.feed, lease: this.#job }, logBytes)
    for (;;) {
      this.#assertGoesOn()
      const seen = await this.#copyOutput(caller, writer)
      if (this.#events?.fault) {
        if (!(await writer.flush())) throw taken()
        throw this.#events.fault
      }
      const ended = seen ?? (await this.#endedCommand())
      if (ended) {
        if (!(await writer.flush())) throw taken()
        return { ...ended, isWhole: writer.end - logStart >= ended.outputBytes }
      }
      await sleep(RETRY_MS, this.#broken.signal)
    }
  }

  /** The command as its stream told its end; undefined when the stream could not go on. */
  async #copyOutput(caller: Caller, writer: JobLogWriter): Promise<Command | undefined> {
    const { sandbox, command, logStart } = this.#job
    if (sandbox === null || command === null) throw new AirlockError('internal', 'A job has no command to follow.')
    const asked = { from: writer.end - logStart, follow: true, signal: this.#broken.signal }
    try {
      for await (const event of this.#parts.commands.allEvents(caller, { sandbox, command }, asked)) {
        if (event.event === 'ended') return event.command
        await this.#take(event, writer)
        if (this.#events?.fault) return undefined
      }
    } catch (error) {
      this.#assertGoesOn()
      if (error === this.#broken.signal.reason || isTaken(error)) throw error
      this.#context.log.info('lost the output of a job; looking at its command', { job: this.#job.id, error })
    }
    return undefined
  }

  /** Events are read before they are written: what the writer keeps after a failure is not read again. */
  async #take(event: CommandEvent | EventOutput, writer: JobLogWriter): Promise<void> {
    if (event.event !== 'output' && event.event !== 'event_output') return
    if (event.event === 'event_output') this.#events?.push(event.bytes, this.#job.logStart + event.offset)
    if (!(await writer.push(event))) throw taken()
  }

  /** As its row says, when it has ended; throws when nobody can say what became of it. */
  async #endedCommand(): Promise<Command | undefined> {
    const row = await this.#commandRow()
    if (row) return row.state === 'running' ? undefined : toCommand(row)
    const { sandbox } = this.#job
    const there = sandbox === null ? undefined : await this.#context.store.query((db) => findSandbox(db, sandbox))
    // Rows of commands are written before the data plane hears of them, and outlive this process, but not the host.
    if (there?.state === 'active') throw new AirlockError('not_ready', 'The command never began.')
    throw new AirlockError('outcome_unknown')
  }

  async #armSoftStop(caller: Caller): Promise<Disposable | undefined> {
    const { clock, log } = this.#context
    const { sandbox, command, timeoutMs } = this.#job
    const row = await this.#commandRow()
    if (!row || sandbox === null || command === null) return undefined
    const { commands } = this.#parts
    return armSoftStop({ commands, caller, ref: { sandbox, command }, row, timeoutMs, now: clock.now(), log })
  }

  async #commandRow(): Promise<StoredCommand | undefined> {
    const { sandbox, command } = this.#job
    if (sandbox === null || command === null) return undefined
    return this.#context.store.query((db) => findCommand(db, { sandbox, command }))
  }

  async #resultOf(command: Command & { readonly isWhole: boolean }) {
    const { exitCode, signal, cause, truncated, isWhole } = command
    const lost = command.state === 'lost' && cause === null ? describeError(new AirlockError('outcome_unknown')) : null
    const provenance = await this.#provenance()
    return { exitCode, signal, cause, error: lost, truncated: truncated || !isWhole, provenance }
  }

  /** Of the last try alone: what follows another try is of no use. */
  async #collect(caller: Caller, job: StoredJob): Promise<JobArtifacts | null> {
    const { cancelAt } = await this.#latest()
    if (isTriedAgain({ ...job, cancelAt }, outcomeOf(job))) return null
    return collectOfTry(this.#parts.artifacts, { caller, job, signal: this.#broken.signal })
  }

  async #provenance(): Promise<JobProvenance | null> {
    const { sandbox, template } = this.#job
    const row = sandbox === null ? undefined : await this.#context.store.query((db) => findSandbox(db, sandbox))
    if (!row) return null
    const policyVersion = (await this.#commandRow())?.decision?.policyVersion ?? null
    const { runtime = null, tier = null } = row.isolation ?? {}
    return { image: row.image, template, runtime, tier, policyVersion }
  }

  /** The sandbox is gone before the row says that the job is over. */
  async #settle(outcome: Outcome): Promise<TryResult> {
    const { failpoint } = this.#context
    await this.#tearDown()
    await failpoint('job.torn-down')
    const changes = this.#usage ? { ...outcome.changes, resourceUsage: this.#usage } : (outcome.changes ?? {})
    await this.#parts.ends.settle(await this.#latest(), { ...outcome, changes })
    await failpoint('job.ended')
    return { kind: 'over' }
  }

  /** A cancel may have been written since. The try stays ours, or writes nothing. */
  async #latest(): Promise<StoredJob> {
    const row = await this.#context.store.query((db) => findJob(db, this.#job.id))
    return { ...this.#job, cancelAt: row?.cancelAt ?? null }
  }

  async #tearDown(): Promise<void> {
    const { sandbox, id } = this.#job
    if (sandbox === null) return
    const { store, log } = this.#context
    const row = await store.query((db) => findSandbox(db, sandbox))
    if (!row || isEnded(row.state)) return
    const onUsage = (usage: ResourceUsage | null) => void (this.#usage = usage)
    const end = { reason: 'terminated', actor: 'system', requestId: id, force: true, onUsage } as const
    await this.#parts.termination
      .terminate(sandbox, end)
      .catch((error: unknown) => log.warn('the sandbox of a job is left to the sweep', { sandbox, job: id, error }))
  }

  async #stopped(error: unknown): Promise<TryResult> {
    const reason = this.#breakOff(error)
    try {
      if (reason === 'stopping') return { kind: 'left' }
      if (reason === 'taken') return await this.#abandon()
      if (reason === 'canceled') return await this.#settle({ state: 'canceled', error: null, mayRetry: false })
      return await this.#failed(error)
    } catch (cause) {
      // The row says how far it came: the next look, or the next start, goes on from there.
      this.#context.log.warn('a try of a job is left for later', { job: this.#job.id, error: cause })
      return { kind: 'left' }
    }
  }

  #breakOff(error: unknown): unknown {
    if (isTaken(error)) return 'taken' satisfies BreakOff
    return this.#broken.signal.aborted ? this.#broken.signal.reason : undefined
  }

  async #abandon(): Promise<TryResult> {
    this.#context.log.warn('a job was judged by another node, so its sandbox ends', { job: this.#job.id })
    await this.#tearDown()
    return { kind: 'over' }
  }

  async #failed(error: unknown): Promise<TryResult> {
    const { code, message } = describeError(error)
    if (code === 'internal') this.#context.log.error('a try of a job failed', { job: this.#job.id, error })
    const fault = isAirlockError(error) ? error.code : 'internal'
    const isPassing = PASSING.has(fault)
    if (isPassing && (await this.#commandRow())) return { kind: 'left' }
    if (!isPassing) return this.#settle({ state: 'failed', error: { code, message }, mayRetry: OF_HOST.has(fault) })
    await this.#tearDown()
    await this.#parts.ends.giveBack(await this.#latest())
    return { kind: 'waits', why: fault }
  }

  #body(): SubmitJobBody {
    if (!this.#job.spec) throw new AirlockError('internal', 'A job that runs has lost what it is to run.')
    return this.#job.spec.body
  }

  async #change(changes: JobChanges): Promise<void> {
    const { store } = this.#context
    this.#assertGoesOn()
    if (!(await store.transaction(async (db) => changeRunningJob(db, this.#job, changes)))) throw taken()
    this.#job = { ...this.#job, ...changes }
    this.#parts.feed.tell(this.#job.id)
  }

  #assertGoesOn(): void {
    this.#broken.signal.throwIfAborted()
  }
}

const TAKEN = Symbol('taken')

/** The row is not this node's any more. */
function taken(): Error {
  return Object.assign(new AirlockError('wrong_node', 'Another node judged the job.'), { [TAKEN]: true })
}

function isTaken(error: unknown): boolean {
  return typeof error === 'object' && error !== null && TAKEN in error
}

function outcomeOf({ exitCode, cause, error }: StoredJob): Outcome {
  if (exitCode === 0 && error === null && cause === 'exit') return { state: 'succeeded', error: null, mayRetry: false }
  return { state: 'failed', error, mayRetry: cause === null || !ENDED_BY_ORDER.has(cause) }
}

function codeFile(path: string, code: string): { readonly path: string; readonly base64: string } {
  return { path, base64: Buffer.from(code).toString('base64') }
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
