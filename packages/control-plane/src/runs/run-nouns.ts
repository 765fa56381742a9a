import {
  AirlockError,
  BOUNDS,
  DEMO_MODEL,
  type GraphSpec,
  type ModelLimits,
  modelLimits,
  type Run,
  type RunSummary,
  type RunUsage,
  type SomeModelLimits,
  type SubmitJobBody,
  submitJobBody,
  type SubmitRunBody,
} from '@airlock/contract'
import { createHash } from 'node:crypto'
import type { JobRun, StoredJob } from '../store/jobs.ts'
import { softStopMs } from './soft-stop.ts'

export function toSummary(row: StoredJob): RunSummary {
  if (!row.run) throw new AirlockError('internal', 'A run has lost its agent program.')
  const { graph, version, model, budget } = row.run
  return {
    id: row.id,
    tenant: row.tenant,
    agent: row.agent,
    graph,
    version,
    model,
    budget,
    state: row.state,
    error: errorOf(row),
    labels: row.labels,
    idempotencyKey: row.idempotencyKey,
    timeoutMs: row.timeoutMs,
    cancelRequested: row.cancelAt !== null,
    node: row.node,
    sandbox: row.sandbox,
    command: row.command,
    createdAt: toTime(row.createdAt),
    startedAt: row.startedAt === null ? null : toTime(row.startedAt),
    endedAt: row.endedAt === null ? null : toTime(row.endedAt),
  }
}

export function toRun(row: StoredJob, usage: RunUsage): Run {
  return { ...toSummary(row), result: row.result, usage }
}

/** Why it did not succeed. A canceled run has an error too, for whoever waits for its answer. */
function errorOf({ state, error }: StoredJob): RunSummary['error'] {
  if (state === 'canceled') return { code: 'run_canceled', message: 'The run was canceled.' }
  return error
}

/** The model of a run and all that its sandbox may name. Throws `model_not_found` for one that the agent program does not list. */
export function modelsOf(
  spec: GraphSpec,
  asked: string | undefined,
): { readonly model: string; readonly models: string[] } {
  const model = asked ?? spec.models[0] ?? DEMO_MODEL.name
  if (spec.models.length === 0) return { model, models: [model] }
  if (spec.models.includes(model)) return { model, models: [...spec.models] }
  throw new AirlockError('model_not_found', `The agent program does not run with ${model}.`, {
    hint: `It runs with: ${spec.models.join(', ')}.`,
  })
}

/** Of each cap the smaller one: a caller may lower those of the agent program. */
export function budgetOf(asked: SomeModelLimits, own: SomeModelLimits): ModelLimits {
  const { calls, tokens, dollars, concurrentCalls } = modelLimits.parse(own)
  const given = modelLimits.parse(asked)
  return {
    calls: smaller(given.calls, calls),
    tokens: smaller(given.tokens, tokens),
    dollars: smaller(given.dollars, dollars),
    concurrentCalls: Math.min(given.concurrentCalls, concurrentCalls),
  }
}

function smaller(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}

/** The job of a run: the program, with the conversation and what it is about as files. */
export function jobOf(
  asked: SubmitRunBody,
  of: { readonly id: string; readonly spec: GraphSpec; readonly run: JobRun },
): SubmitJobBody {
  const { id, spec, run } = of
  const timeoutMs = Math.min(asked.timeoutMs ?? spec.timeoutMs, spec.timeoutMs)
  const { graph, version, model, budget } = run
  const context = { runId: id, graph, version, model, budget, timeoutMs, softStopMs: softStopMs(timeoutMs) }
  const work = spec.code === undefined ? { argv: spec.argv } : { code: spec.code, language: spec.language }
  return submitJobBody.parse({
    ...work,
    template: spec.template,
    agent: asked.agent,
    limits: spec.limits,
    tier: spec.tier,
    files: [fileOf('messages', asked.messages), fileOf('context', context)],
    timeoutMs,
    maxOutputBytes: BOUNDS.runLogBytes,
    labels: asked.labels,
    idempotencyKey: asked.idempotencyKey,
  })
}

/** The same request has the same one, whatever became of the catalog since. */
export function runFingerprint({ idempotencyKey: _key, stream: _stream, ...asked }: SubmitRunBody): string {
  return createHash('sha256').update(JSON.stringify(asked)).digest('hex')
}

function fileOf(name: string, value: unknown): { readonly path: string; readonly base64: string } {
  return { path: `.airlock/${name}.json`, base64: Buffer.from(JSON.stringify(value)).toString('base64') }
}

function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
