import { AirlockError, ERRORS, type ErrorCode, isErrorCode } from '@airlock/contract'
import type { Context } from '../app/context.ts'
import { describeError } from '../evidence/evidence.ts'
import type { Outcome } from '../jobs/job-ends.ts'
import { logPieces } from '../jobs/job-log.ts'
import type { StoredCommand } from '../store/commands.ts'
import type { StoredJob } from '../store/jobs.ts'
import { softStopMs } from './soft-stop.ts'
import { RunOutput } from './run-output.ts'

/** Errors of the door of models that a program may pass on as the reason of its own. */
const PASSED_ON: ReadonlySet<string> = new Set<ErrorCode>([
  'model_not_found',
  'approval_required',
  'policy_denied',
  'budget_exhausted',
  'too_many_requests',
  'upstream_refused',
  'upstream_rejected',
  'upstream_busy',
  'upstream_failed',
  'upstream_unavailable',
  'upstream_timeout',
  'upstream_broken',
  'key_unavailable',
  'not_ready',
])

/** What the program of the latest try has said so far, read from the log. */
export async function outputSoFar(
  store: Context['store'],
  job: Pick<StoredJob, 'id' | 'logStart' | 'logBytes'>,
): Promise<RunOutput> {
  const output = new RunOutput()
  const of = { context: { store }, id: job.id }
  for await (const { stream, bytes, offset } of logPieces(of, { from: job.logStart, until: job.logBytes }))
    if (stream === 'events') output.push(bytes, offset)
  return output
}

/** How a run ended whose program has ended. Precondition: all that it said is in the log. */
export async function runOutcome(
  store: Context['store'],
  job: StoredJob,
  command: StoredCommand | undefined,
): Promise<Outcome> {
  const output = await outputSoFar(store, job)
  output.end(job.logBytes)
  const error = output.fault ?? faultOf(job, { output, command })
  if (error) return { state: 'failed', error: describeError(error), mayRetry: false }
  return { state: 'succeeded', error: null, mayRetry: false, changes: { result: output.result ?? null } }
}

function faultOf(
  job: StoredJob,
  of: { readonly output: RunOutput; readonly command: StoredCommand | undefined },
): AirlockError | undefined {
  const { result } = of.output
  if (job.error) return new AirlockError(isErrorCode(job.error.code) ? job.error.code : 'internal', job.error.message)
  if (result?.meta.error) return passedOn(result.meta.error)
  if (job.cause === 'timeout' || (!result && wasStopped(job, of.command)))
    return new AirlockError('timeout', `The run took longer than its timeout of ${job.timeoutMs / 1000} s.`)
  if (job.exitCode !== 0) return new AirlockError('graph_failed', `The agent program ${endOf(job)}.`)
  return result ? undefined : new AirlockError('graph_no_answer')
}

function endOf({ exitCode, signal, cause }: StoredJob): string {
  if (exitCode !== null) return `ended with exit code ${exitCode}`
  return `was ended by ${cause !== null && cause !== 'signal' ? cause : (signal ?? 'a signal')}`
}

/** It was asked to end, and did so without a result. */
function wasStopped({ signal, timeoutMs }: StoredJob, command: StoredCommand | undefined): boolean {
  if (signal !== 'SIGTERM' || !command || command.endedAt === null) return false
  return command.endedAt - command.startedAt >= softStopMs(timeoutMs)
}

/** The program may say which error of a model ended it. Any other code is its own, and part of the message. */
function passedOn({ code, message }: { readonly code: string; readonly message: string }): AirlockError {
  if (PASSED_ON.has(code) && isErrorCode(code)) return new AirlockError(code, message || ERRORS[code].message)
  return new AirlockError('graph_failed', `The agent program failed: ${message || code}`)
}
