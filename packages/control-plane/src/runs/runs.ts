import {
  AirlockError,
  isErrorCode,
  type Run,
  type RunEvent,
  type RunLog,
  type RunSummary,
  type RunUsage,
  type SubmitRunBody,
} from '@airlock/contract'
import { newId } from '@airlock/std'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import type { JobFeed } from '../jobs/job-feed.ts'
import { logPieces } from '../jobs/job-log.ts'
import type { Jobs, ListJobs } from '../jobs/jobs.ts'
import type { StoredJob } from '../store/jobs.ts'
import { sumUsage } from '../store/usage.ts'
import type { Catalog } from './catalog.ts'
import { runEvents } from './run-events.ts'
import { budgetOf, jobOf, modelsOf, runFingerprint, toRun, toSummary } from './run-nouns.ts'

interface Parts {
  readonly jobs: Pick<Jobs, 'enqueue' | 'rows' | 'find' | 'cancelRow'>
  readonly catalog: Pick<Catalog, 'find'>
  readonly feed: JobFeed
}

interface Asked {
  readonly from: number
  readonly follow: boolean
  readonly signal: AbortSignal
}

/** Runs of agent programs. Each is a job with a conversation as its files and events as its output. */
export class Runs {
  readonly #context: Pick<Context, 'store' | 'clock' | 'models'>
  readonly #parts: Parts

  constructor(context: Pick<Context, 'store' | 'clock' | 'models'>, parts: Parts) {
    this.#context = context
    this.#parts = parts
  }

  async submit(caller: Caller, asked: SubmitRunBody): Promise<Run> {
    const { clock, models } = this.#context
    const { name, spec } = await this.#parts.catalog.find(caller, asked.graph)
    const chosen = modelsOf(spec, asked.model)
    models.namesOf(chosen.models)
    const id = newId('run', clock.now())
    const budget = budgetOf(asked.budget, spec.modelLimits)
    const run = { graph: name, version: spec.version, ...chosen, budget, doors: spec.doors }
    const body = jobOf(asked, { id, spec, run })
    return this.#show(await this.#parts.jobs.enqueue(caller, body, { id, run, fingerprint: runFingerprint(asked) }))
  }

  async list(caller: Caller, asked: ListJobs): Promise<Page<RunSummary>> {
    return toPage(await this.#parts.jobs.rows(caller, { ...asked, kind: 'run' }), asked.limit, toSummary)
  }

  async get(caller: Caller, id: string): Promise<Run> {
    return this.#show(await this.#find(caller, id))
  }

  /** It reduces, so it does not wait for evidence. */
  async cancel(caller: Caller, id: string): Promise<Run> {
    await this.#parts.jobs.cancelRow(caller, await this.#find(caller, id))
    return this.get(caller, id)
  }

  /** What it did from `from` on, after how it stands now; with `follow` until it is done. */
  async *events(caller: Caller, id: string, asked: Asked): AsyncGenerator<RunEvent> {
    yield { event: 'started', run: toSummary(await this.#find(caller, id)) }
    const last = async (row: StoredJob) => this.#show(row)
    yield* runEvents({ context: this.#context, feed: this.#parts.feed, id, last }, asked)
  }

  /** What its program has printed so far. */
  async log(caller: Caller, id: string): Promise<RunLog> {
    const row = await this.#find(caller, id)
    const printed = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
    for await (const { stream, bytes } of logPieces({ context: this.#context, id }, { from: 0, until: row.logBytes }))
      if (stream !== 'events') printed[stream].push(bytes)
    const text = (stream: 'stdout' | 'stderr') => Buffer.concat(printed[stream]).toString('utf8')
    return { stdout: text('stdout'), stderr: text('stderr'), truncated: row.truncated }
  }

  /** Waits for the end of a run. Throws the error of one that did not succeed. */
  async answer(caller: Caller, id: string, signal: AbortSignal): Promise<{ readonly run: Run; readonly text: string }> {
    let text = ''
    for await (const event of this.events(caller, id, { from: 0, follow: true, signal })) {
      if (event.event === 'assistant_final') text = event.content
      if (event.event === 'done') return { run: succeeded(event.run), text }
    }
    throw new AirlockError('not_ready', 'The server is stopping. The run goes on.')
  }

  async #find(caller: Caller, id: string): Promise<StoredJob> {
    return this.#parts.jobs.find(caller, id, 'run')
  }

  async #show(row: StoredJob): Promise<Run> {
    return toRun(row, await this.#usage(row))
  }

  /** One sandbox is one run: what the ledger has of it is what the run used. */
  async #usage({ tenant, sandbox }: StoredJob): Promise<RunUsage> {
    const filter = { tenant, agents: null, by: 'sandbox', limit: 1 } as const
    const [row] = sandbox === null ? [] : await this.#context.store.query((db) => sumUsage(db, { ...filter, sandbox }))
    const { microDollars, computeMs, ...counted } = row ?? UNUSED
    const { calls, estimatedCalls, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = counted
    const tokens = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }
    const dollars = microDollars / 1e6
    return { calls, estimatedCalls, ...tokens, microDollars, dollars, computeSeconds: computeMs / 1000 }
  }
}

const UNUSED = {
  calls: 0,
  estimatedCalls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  microDollars: 0,
  computeMs: 0,
}

function succeeded(run: Run): Run {
  if (!run.error) return run
  const { code, message } = run.error
  throw new AirlockError(isErrorCode(code) ? code : 'graph_failed', message)
}
