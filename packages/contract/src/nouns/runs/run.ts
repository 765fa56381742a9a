import { z } from 'zod'
import { BOUNDS, DEFAULTS } from '../../defaults.ts'
import { modelName } from '../../host/model-routes.ts'
import { graphName } from './graph.ts'
import { jobState } from '../job.ts'
import { modelLimits, someModelLimits } from '../sandbox-models.ts'
import { agentId, commandId, id, labels, plainText, runId, sandboxId, stepKey, time, within } from '../scalars.ts'

export const runMessage = z.strictObject({
  role: z.enum(['system', 'user', 'assistant']),
  content: plainText.max(BOUNDS.runMessageLength),
})
export type RunMessage = z.infer<typeof runMessage>

export const submitRunBody = z.strictObject({
  graph: graphName,
  messages: z.array(runMessage).min(1).max(BOUNDS.runMessages).describe('The conversation so far, oldest first.'),
  model: modelName.optional().describe('The default of the graph when absent.'),
  budget: someModelLimits
    .default({})
    .describe('Caps on the model calls of this run; those of the graph hold beside them.'),
  agent: agentId.optional(),
  timeoutMs: within(DEFAULTS.runTimeoutMs).int().optional().describe('Less than the timeout of the graph.'),
  labels: labels.default({}),
  idempotencyKey: stepKey
    .optional()
    .describe('The same key again, with the same request and agent, answers the first run and starts nothing.'),
  stream: z.boolean().default(false).describe('Answer with events, as the header Accept: text/event-stream does.'),
})
export type SubmitRunBody = z.infer<typeof submitRunBody>

const agentError = z.strictObject({ code: plainText.max(64), message: plainText.max(BOUNDS.runErrorLength) })

/** What an agent program leaves as its result. */
export const runResult = z.strictObject({
  payloads: z.array(z.strictObject({ text: z.string() })).max(BOUNDS.runPayloads),
  meta: z.strictObject({ durationMs: z.number().min(0), error: agentError.nullable() }),
})
export type RunResult = z.infer<typeof runResult>

const phase = z.enum(['thinking', 'tool_use', 'compacting'])
const toolCallId = plainText.min(1).max(128)

/** One line of the event output of an agent program. Nothing else is accepted there. */
export const agentEvent = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('status'), phase, label: plainText.max(256).optional() }),
  z.strictObject({ type: z.literal('text_delta'), delta: z.string() }),
  z.strictObject({
    type: z.literal('tool_call_start'),
    toolCallId,
    toolName: plainText.min(1).max(128),
    args: z.json(),
  }),
  z.strictObject({
    type: z.literal('tool_call_result'),
    toolCallId,
    result: z.json(),
    isError: z.boolean().default(false),
  }),
  z.strictObject({ type: z.literal('result'), ...runResult.shape }),
])
export type AgentEvent = z.infer<typeof agentEvent>

/** Of the ledger, for the one sandbox of the run. */
export const runUsage = z.strictObject({
  calls: z.int(),
  /** Calls whose provider reported no usage: they are charged their ceiling. */
  estimatedCalls: z.int(),
  inputTokens: z.int(),
  outputTokens: z.int(),
  cacheReadTokens: z.int(),
  cacheWriteTokens: z.int(),
  microDollars: z.int(),
  dollars: z.number(),
  computeSeconds: z.number(),
})
export type RunUsage = z.infer<typeof runUsage>

const summaryFields = {
  id: runId,
  tenant: id,
  agent: agentId,
  graph: graphName,
  /** Of the graph, when the run was asked for. */
  version: z.string(),
  model: z.string(),
  budget: modelLimits,
  state: jobState,
  /** Why it failed; null otherwise. */
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  labels,
  idempotencyKey: z.string().nullable(),
  timeoutMs: z.int(),
  cancelRequested: z.boolean(),
  node: z.string().nullable(),
  sandbox: sandboxId.nullable(),
  command: commandId.nullable(),
  createdAt: time,
  startedAt: time.nullable(),
  endedAt: time.nullable(),
}

/** A run in a list. */
export const runSummary = z.strictObject(summaryFields)
export type RunSummary = z.infer<typeof runSummary>

export const run = z.strictObject({
  ...summaryFields,
  /** What the program left, once the run has succeeded. */
  result: runResult.nullable(),
  /** So far. A call that broke off is added up to half a minute after the end. */
  usage: runUsage,
})
export type Run = z.infer<typeof run>

const offset = z.int()

/**
 * What a run does, as it happens. `offset` is the SSE id: with it as Last-Event-ID a reader goes on without a gap. `assistant_final`
 * comes once where the run succeeded and is the text of all deltas; `error` comes once otherwise; `done` comes once and last.
 */
export const runEvent = z.discriminatedUnion('event', [
  z.strictObject({ event: z.literal('started'), run: runSummary }),
  z.strictObject({
    event: z.literal('status'),
    phase: z.enum(['queued', 'running', ...phase.options]),
    label: z.string().optional(),
    /** Absent of the states of the run itself. */
    offset: offset.optional(),
  }),
  z.strictObject({ event: z.literal('text_delta'), offset, delta: z.string() }),
  z.strictObject({ event: z.literal('tool_call_start'), offset, toolCallId, toolName: z.string(), args: z.json() }),
  z.strictObject({ event: z.literal('tool_call_result'), offset, toolCallId, result: z.json(), isError: z.boolean() }),
  z.strictObject({ event: z.literal('assistant_final'), offset, content: z.string() }),
  z.strictObject({
    event: z.literal('error'),
    /** Of a run that failed or was canceled. An error of the stream itself has `error` instead, and no `code`. */
    offset: offset.optional(),
    code: z.string().optional(),
    message: z.string().optional(),
    error: z.strictObject({ code: z.string(), message: z.string(), hint: z.string() }).optional(),
  }),
  z.strictObject({ event: z.literal('done'), offset, run }),
])
export type RunEvent = z.infer<typeof runEvent>

/** What the program of a run printed; its events are not in it. */
export const runLog = z.strictObject({ stdout: z.string(), stderr: z.string(), truncated: z.boolean() })
export type RunLog = z.infer<typeof runLog>
