import {
  AirlockError,
  BOUNDS,
  type Job,
  type JobEvent,
  type JobState,
  type Operation,
  type SubmitJobBody,
} from '@airlock/contract'
import { newId } from '@airlock/std'
import { actingAgent } from '../agents/acting-agent.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import type { Artifacts } from '../artifacts/artifacts.ts'
import { type Deed, deedOf, doRecorded, saying } from '../evidence/evidence.ts'
import { recordRefusal } from '../evidence/refusals.ts'
import type { Foreseen } from '../policies/guardian.ts'
import { insidePath } from '../sandboxes/asked-paths.ts'
import type { Creation } from '../sandboxes/create.ts'
import { isOwned, mayUseAgent } from '../sandboxes/owned-sandbox.ts'
import { assertFits } from '../spend/reserve.ts'
import type { Queries } from '../store/engine/store.ts'
import { countInQueue, countQueued } from '../store/job-queues.ts'
import {
  changeRunningJob,
  findJob,
  findJobByKey,
  insertJob,
  type JobRun,
  listJobs,
  type StoredJob,
} from '../store/jobs.ts'
import { assertKeyed } from './authority.ts'
import type { JobEnds } from './job-ends.ts'
import type { JobFeed } from './job-feed.ts'
import { jobEvents } from './job-log.ts'
import { argvOf, commandFor, fingerprintOf, isOver, sandboxFor, sha256Of, toJob } from './job-nouns.ts'
import type { JobRunner } from './job-runner.ts'

interface Parts {
  readonly creation: Pick<Creation, 'foresee'>
  readonly artifacts: Pick<Artifacts, 'get'>
  readonly ends: JobEnds
  readonly feed: JobFeed
  readonly runner: Pick<JobRunner, 'poke' | 'cancel'>
}

/** In what a row of a run differs from one of a job. */
export interface NewRun extends Pick<StoredJob, 'id' | 'fingerprint'> {
  readonly run: JobRun
}

export interface ListJobs {
  readonly state?: JobState | undefined
  readonly agent?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/** Work that outlives its caller: submitted, looked at, canceled. `JobRunner` does it. */
export class Jobs {
  readonly #context: Context
  readonly #parts: Parts

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
  }

  /** What can be refused by now is refused now; the sandbox and the command are asked about again when their time comes. */
  async submit(caller: Caller, body: SubmitJobBody): Promise<Job> {
    return toJob(await this.enqueue(caller, body))
  }

  /** A job, or with `more` a run of an agent program. */
  async enqueue(caller: Caller, body: SubmitJobBody, more?: NewRun): Promise<StoredJob> {
    const { tenant } = caller.principal
    const row = { ...this.#newRow(caller, body), ...more }
    const known = await this.#sameKey(row)
    if (known) return known
    const deed = deedOf(
      caller,
      { id: null, tenant, agent: row.agent },
      { point: more ? 'run.submit' : 'job.submit', payload: payloadOf(row) },
    )
    await this.#foresee(caller, body, { row, deed })
    const passed = await this.#context.guardian.pass(caller, deed)
    const job = await doRecorded(this.#context, saying(passed, { [more ? 'run' : 'job']: row.id }), async () => ({
      value: await recordRefusal(this.#context, deed, async () => this.#queue(row)),
    }))
    await this.#context.failpoint('job.row-written')
    this.#parts.runner.poke()
    return job
  }

  async list(caller: Caller, asked: ListJobs): Promise<Page<Job>> {
    return toPage(await this.rows(caller, { ...asked, kind: 'job' }), asked.limit, toJob)
  }

  /** Rows of what is the caller's, one more than the page has. */
  async rows({ principal }: Caller, asked: ListJobs & { readonly kind: 'job' | 'run' }): Promise<readonly StoredJob[]> {
    if (asked.agent !== undefined && !mayUseAgent(principal, asked.agent)) return []
    const { kind, state, cursor: before, limit } = asked
    const agents = asked.agent === undefined ? principal.agents : [asked.agent]
    const filter = { tenant: principal.tenant, agents, kind, state, before, limit: limit + 1 }
    return this.#context.store.query((db) => listJobs(db, filter))
  }

  async get(caller: Caller, id: string): Promise<Job> {
    return toJob(await this.find(caller, id))
  }

  /** It reduces, so it does not wait for evidence. */
  async cancel(caller: Caller, id: string): Promise<Job> {
    await this.cancelRow(caller, await this.find(caller, id))
    return this.get(caller, id)
  }

  /** Precondition: the row is the caller's. */
  async cancelRow(caller: Caller, row: StoredJob): Promise<void> {
    const { store, audit } = this.#context
    const { id } = row
    if (isOver(row) || row.cancelAt !== null) return
    const what = row.run
      ? ({ point: 'run.cancel', payload: { run: id } } as const)
      : ({ point: 'job.cancel', payload: { job: id } } as const)
    const deed = deedOf(caller, { ...row, id: row.sandbox }, what)
    audit.note({ ...deed, status: 'requested' })
    const change = await store.transaction(async (db) => this.#markCanceled(db, caller, id))
    if (change === 'ended') await this.#parts.ends.announce(id)
    if (change === 'marked') this.#parts.runner.cancel(id)
    audit.note({ ...deed, status: 'done' })
  }

  /** What it said from `from` on, after how it stands now; with `follow` until it has ended. */
  async *events(
    caller: Caller,
    id: string,
    asked: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncGenerator<JobEvent> {
    yield { event: 'started', job: toJob(await this.find(caller, id)) }
    yield* jobEvents({ context: this.#context, feed: this.#parts.feed, id }, asked)
  }

  async #foresee(
    caller: Caller,
    body: SubmitJobBody,
    of: { readonly row: StoredJob; readonly deed: Deed },
  ): Promise<void> {
    const { guardian, store, budgetDefaults } = this.#context
    const { id: job, tenant, agent, run } = of.row
    const operations = await recordRefusal(this.#context, of.deed, async () => {
      assertKeyed(caller)
      for (const { artifact } of body.inputs) await this.#parts.artifacts.get(caller, artifact)
      return this.#parts.creation.foresee(caller, sandboxFor(body, { agent, job, run }))
    })
    const { argv = [], cwd, timeoutMs, env } = commandFor(body, run)
    const command: Operation = { kind: 'command', argv, cwd: insidePath(cwd), env: Object.keys(env), timeoutMs }
    const later = operations.map((operation): Foreseen => ({ point: 'sandbox.create', operation }))
    await guardian.foresee(caller, of.deed, [...later, { point: 'command.run', operation: command }])
    const limits = operations.flatMap((one) => (one.kind === 'sandbox' ? [one.limits] : []))[0]
    if (limits)
      await recordRefusal(this.#context, of.deed, async () =>
        store.query(async (db) => assertFits(db, { tenant, agent, limits }, budgetDefaults)),
      )
  }

  async #sameKey(
    { tenant, agent, idempotencyKey, fingerprint }: StoredJob,
    db?: Queries,
  ): Promise<StoredJob | undefined> {
    if (idempotencyKey === null) return undefined
    const find = async (queries: Queries) => findJobByKey(queries, { tenant, agent, idempotencyKey })
    const known = db ? await find(db) : await this.#context.store.query(find)
    if (known && known.fingerprint !== fingerprint) throw new AirlockError('job_mismatch')
    return known
  }

  async #queue(row: StoredJob): Promise<StoredJob> {
    return this.#context.store.transaction(async (db) => {
      const known = await this.#sameKey(row, db)
      if (known) return known
      if ((await countQueued(db, row.tenant)) >= BOUNDS.queuedJobs) throw new AirlockError('queue_full')
      await insertJob(db, row)
      await countInQueue(db, row, 1)
      return row
    })
  }

  async #markCanceled(db: Queries, caller: Caller, id: string): Promise<'ended' | 'marked' | 'over'> {
    const row = await findJob(db, id)
    const cancel = { cancelAt: this.#context.clock.now(), cancelBy: caller.principal.actor }
    if (!row || isOver(row)) return 'over'
    if (row.state === 'running') return (await changeRunningJob(db, row, cancel)) ? 'marked' : 'over'
    const canceled = { state: 'canceled', error: null, mayRetry: false, changes: cancel } as const
    return (await this.#parts.ends.endQueued(db, row, canceled)) ? 'ended' : 'over'
  }

  /** Not yours is not found, and neither is a run. */
  async find({ principal }: Caller, id: string, kind: 'job' | 'run' = 'job'): Promise<StoredJob> {
    const row = await this.#context.store.query((db) => findJob(db, id))
    if (!row || !isOwned(principal, row) || (row.run !== null) !== (kind === 'run'))
      throw new AirlockError(kind === 'run' ? 'run_not_found' : 'job_not_found')
    return row
  }

  #newRow(caller: Caller, body: SubmitJobBody): StoredJob {
    const { tenant, actor, role, agents, platform } = caller.principal
    const now = this.#context.clock.now()
    const agent = actingAgent(caller.principal, body.agent)
    return {
      id: newId('job', now),
      tenant,
      agent,
      actor,
      state: 'queued',
      spec: { body, principal: { actor, tenant, role, agents: agents && [...agents], platform } },
      labels: body.labels,
      argv: [...argvOf(body)],
      language: body.language ?? null,
      template: body.template,
      sha256: sha256Of(body),
      idempotencyKey: body.idempotencyKey ?? null,
      fingerprint: fingerprintOf(body),
      timeoutMs: body.timeoutMs,
      queueMs: body.queueMs,
      queueEndsAt: now + body.queueMs,
      retries: body.retries,
      retryDelayMs: body.retryDelayMs,
      tries: 0,
      notBefore: now,
      ...NOTHING_YET,
      createdAt: now,
    }
  }
}

const NOTHING_YET = {
  node: null,
  leaseUntil: null,
  sandbox: null,
  command: null,
  cancelAt: null,
  cancelBy: null,
  hasResult: false,
  exitCode: null,
  signal: null,
  cause: null,
  error: null,
  truncated: false,
  artifacts: null,
  resourceUsage: null,
  provenance: null,
  logBytes: 0,
  logStart: 0,
  startedAt: null,
  endedAt: null,
  endNode: null,
  recorded: false,
  run: null,
  result: null,
} as const satisfies Partial<StoredJob>

/** What is recorded of a request: no code, no environment, no content of files. */
function payloadOf({ argv, language, template, sha256, labels, retries, timeoutMs, run }: StoredJob) {
  const work = { argv, language, template, sha256, labels, retries, timeoutMs }
  // Rules know an agent program as an action.
  return run ? { action: run.graph, version: run.version, model: run.model, budget: { ...run.budget }, ...work } : work
}
