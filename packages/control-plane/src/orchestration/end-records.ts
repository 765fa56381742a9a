import type { NewRecord, ResourceUsage } from '@airlock/contract'
import type { StoredCommand } from '../store/commands.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'

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
    ...(command.state === 'lost' && why === 'sandbox-ended' ? { error: SANDBOX_ENDED } : {}),
    payload: {
      command: command.id,
      exitCode: command.exitCode,
      signal: command.signal,
      timedOut: command.timedOut,
      truncated: command.truncated,
      outputBytes: command.outputBytes,
    },
    happenedAt: new Date(at).toISOString(),
  }
}

const SANDBOX_ENDED = { code: 'sandbox_ended', message: 'The sandbox ended before the command did.' }
