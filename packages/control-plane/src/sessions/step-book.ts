import type { EndCause, NodeCommand, StepError } from '@airlock/contract'
import { countRestart } from '../store/sessions.ts'
import { endStep, findStep, type StepEnd, type StoredStep } from '../store/steps.ts'
import { type Book, isForgotten } from '../commands/command-watch.ts'
import type { Context } from '../app/context.ts'
import type { Receipts } from '../evidence/receipts.ts'
import { StepSaid } from './step-said.ts'

const RICH_MS = 30_000

/** Where steps end: their rows, and their last records. */
export function stepBook(context: Context, receipts: Receipts): Book<StoredStep, StepEnd> {
  const { store, clock, failpoint } = context
  return {
    read: async (row) => store.query((db) => findStep(db, { session: row.session, step: row.id })),
    isRunning: (row) => isUnended(row),
    endOf: async (row, node) =>
      node ? endOf(node, await lastError(context, row, node)) : unknownEnd(row, clock.now()),
    write: async (row, end) => {
      if (!(await store.quickly((db) => endStep(db, row.id, end)))) return undefined
      await failpoint('step.result-written')
      if (end.restarted) await store.transaction((db) => countRestart(db, row.session))
      return { ...row, ...end }
    },
    record: (row) => receipts.stepEnded(row),
  }
}

export function isUnended(step: Pick<StoredStep, 'status'>): boolean {
  return step.status === 'accepted' || step.status === 'running'
}

/** What the data plane says of an ended step, as our row holds it; `error` is the last rich line, if it is one. */
export function endOf(node: NodeCommand, error: StepError | null): StepEnd {
  const isCompleted = node.state === 'exited' && node.exitCode === 0
  return {
    status: isCompleted ? 'completed' : 'failed',
    error: isCompleted ? null : explained(node, error ?? plainError(node)),
    cause: node.cause ?? null,
    restarted: node.restarted ?? false,
    truncated: node.truncated,
    outputBytes: node.outputBytes,
    usage: node.usage ?? null,
    startedAt: Math.round(node.startedAt),
    endedAt: Math.round(node.endedAt ?? node.startedAt),
  }
}

/** For a step that its interpreter could say nothing about. */
function plainError(node: NodeCommand): StepError {
  if (node.timedOut) return { name: 'Timeout', message: 'The step took too long.', traceback: '' }
  if (node.state === 'lost') return OUTCOME_UNKNOWN
  return { name: 'RuntimeCrashed', message: 'The interpreter died.', traceback: '' }
}

/** An interpreter that died knows only by which signal. */
function explained(node: NodeCommand, error: StepError): StepError {
  const why = node.cause && error.name === 'RuntimeCrashed' ? CRASHES[node.cause] : undefined
  return why === undefined ? error : { ...error, message: why }
}

const CRASHES: Partial<Record<EndCause, string>> = {
  out_of_memory:
    'The interpreter was killed: the sandbox ran out of memory. Give it more (limits.memoryBytes, --memory), or use less at once.',
  forbidden_call: 'The interpreter was killed: it made a system call that no sandbox may make.',
  cpu_time: 'The interpreter was killed: it used more processor time than it may.',
}

/** The data plane never got it, or does not know it any more. It is never sent again. */
function unknownEnd(row: StoredStep, endedAt: number): StepEnd {
  const { cause, restarted, truncated, outputBytes, usage, startedAt } = row
  return {
    status: 'failed',
    error: OUTCOME_UNKNOWN,
    cause,
    restarted,
    truncated,
    outputBytes,
    usage,
    startedAt,
    endedAt,
  }
}

const OUTCOME_UNKNOWN: StepError = {
  name: 'OutcomeUnknown',
  message: 'The server died while the step ran, and nobody can say what became of it.',
  traceback: '',
}

/** Reads only what was said on the stream `rich`, and only of a step that failed. */
async function lastError(context: Context, row: StoredStep, node: NodeCommand): Promise<StepError | null> {
  if (node.state !== 'exited' || node.exitCode === 0) return null
  const said = new StepSaid(node.outputBytes)
  const asked = { from: node.outputBytes, isRichWhole: true, signal: AbortSignal.timeout(RICH_MS) }
  try {
    for await (const item of context.dataPlane.output({ sandbox: row.sandbox, command: row.id }, asked))
      if (item.kind === 'bytes') said.hear(item)
  } catch (error) {
    if (!isForgotten(error)) throw error
  }
  return said.error
}
