import { ERRORS, isErrorCode, type NewRecord, type ResourceUsage } from '@airlock/contract'
import type { StoredCommand } from '../store/commands.ts'
import type { StoredJob } from '../store/jobs.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'
import type { StoredSession } from '../store/sessions.ts'
import type { StoredStep } from '../store/steps.ts'

/** The last record of a sandbox. */
export function sandboxEndRecord(
  sandbox: StoredSandbox,
  more: { readonly usage: ResourceUsage | null; readonly requestId: string | null },
): NewRecord {
  const at = sandbox.endedAt ?? sandbox.createdAt
  return {
    tenant: sandbox.tenant,
    agent: sandbox.agent,
    sandbox: sandbox.id,
    actor: 'system',
    point: 'sandbox.terminate',
    status: 'done',
    ...(sandbox.error ? { error: sandbox.error } : {}),
    payload: {
      reason: sandbox.endReason,
      livedMs: at - sandbox.createdAt,
      usage: more.usage,
      ...(more.requestId === null ? {} : { requestId: more.requestId }),
    },
    happenedAt: new Date(at).toISOString(),
  }
}

/** What became of the sandbox of a lost node is not known. */
export function lostSandboxRecord({ tenant, agent, id: sandbox, node, error }: StoredSandbox): NewRecord {
  const about = { point: 'sandbox.terminate', status: 'unknown', payload: { node } } as const
  return { tenant, agent, sandbox, actor: 'system', ...about, ...(error ? { error } : {}) }
}

/**
 * The last record of a command. One that has no result because its sandbox ended is `failed`; one that reconciliation
 * could not find any more is `unknown`.
 */
export function commandEndRecord(command: StoredCommand, why: 'result' | 'sandbox-ended' | 'found'): NewRecord {
  const at = command.endedAt ?? command.startedAt
  return {
    tenant: command.tenant,
    agent: command.agent,
    sandbox: command.sandbox,
    actor: command.actor,
    point: 'command.run',
    status: command.state === 'exited' ? 'done' : why === 'sandbox-ended' ? 'failed' : 'unknown',
    durationMs: at - command.startedAt,
    ...(command.decision ? { decision: command.decision } : {}),
    ...(command.state === 'lost' && why === 'sandbox-ended' ? { error: SANDBOX_ENDED } : {}),
    payload: {
      command: command.id,
      exitCode: command.exitCode,
      signal: command.signal,
      timedOut: command.timedOut,
      cause: command.cause,
      truncated: command.truncated,
      outputBytes: command.outputBytes,
    },
    happenedAt: new Date(at).toISOString(),
  }
}

/** The last record of a session. */
export function sessionEndRecord(session: StoredSession, requestId: string | null): NewRecord {
  const at = session.endedAt ?? session.createdAt
  return {
    tenant: session.tenant,
    agent: session.agent,
    sandbox: session.sandbox,
    actor: 'system',
    point: 'session.end',
    status: 'done',
    payload: {
      session: session.id,
      reason: session.endReason,
      livedMs: at - session.createdAt,
      restarts: session.restarts,
      ...(requestId === null ? {} : { requestId }),
    },
    happenedAt: new Date(at).toISOString(),
  }
}

/** The last record of a step. One of which nobody can say what became of it is `unknown`. */
export function stepEndRecord(step: StoredStep): NewRecord {
  const at = step.endedAt ?? step.startedAt
  const { error } = step
  return {
    tenant: step.tenant,
    agent: step.agent,
    sandbox: step.sandbox,
    actor: step.actor,
    point: 'step.run',
    status: step.status === 'completed' ? 'done' : error?.name === 'OutcomeUnknown' ? 'unknown' : 'failed',
    durationMs: at - step.startedAt,
    ...(step.decision ? { decision: step.decision } : {}),
    ...(error ? { error: { code: error.name, message: error.message.slice(0, MAX_MESSAGE) } } : {}),
    payload: {
      step: step.id,
      session: step.session,
      cause: step.cause,
      restarted: step.restarted,
      truncated: step.truncated,
      outputBytes: step.outputBytes,
      usage: step.usage,
    },
    happenedAt: new Date(at).toISOString(),
  }
}

/** The last record of a job. One whose command may or may not have run is `unknown`. */
export function jobEndRecord(job: StoredJob): NewRecord {
  const at = job.endedAt ?? job.createdAt
  const { error, state, exitCode, cause, tries, sandbox, command, sha256, logBytes: outputBytes } = job
  return {
    tenant: job.tenant,
    agent: job.agent,
    sandbox,
    actor: job.actor,
    point: 'job.end',
    status: state === 'succeeded' ? 'done' : UNKNOWN_ENDS.has(error?.code ?? '') ? 'unknown' : 'failed',
    durationMs: at - job.createdAt,
    ...(error ? { error: job.run ? plainError(error.code) : error } : {}),
    payload: {
      job: job.id,
      ...(job.run ? { graph: job.run.graph, model: job.run.model } : {}),
      state,
      tries,
      command,
      exitCode,
      cause,
      sha256,
      outputBytes,
      usage: job.resourceUsage,
    },
    happenedAt: new Date(at).toISOString(),
  }
}

/** Without what the program of a run said of it. */
function plainError(code: string): { readonly code: string; readonly message: string } {
  return { code, message: isErrorCode(code) ? ERRORS[code].message : '' }
}

const UNKNOWN_ENDS: ReadonlySet<string> = new Set(['outcome_unknown', 'node_lost'])

/** What code says when it fails is not evidence beyond its first words. */
const MAX_MESSAGE = 200

const SANDBOX_ENDED = { code: 'sandbox_ended', message: 'The sandbox ended before the command did.' }
