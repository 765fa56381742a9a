import type { Command, NodeCommand, Sandbox, Session, Step } from '@airlock/contract'
import type { CommandEnd, StoredCommand } from '../store/commands.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'
import type { StoredSession } from '../store/sessions.ts'
import type { StoredStep } from '../store/steps.ts'

/** A row as callers see it. */
export function toSandbox(row: StoredSandbox): Sandbox {
  const { bootId: _bootId, actor: _actor, recorded: _recorded, ...shown } = row
  return {
    ...shown,
    createdAt: toTime(row.createdAt),
    lastActiveAt: toTime(row.lastActiveAt),
    expiresAt: toTime(row.expiresAt),
    endsAt: toTime(row.endsAt),
    pausedAt: row.pausedAt === null ? null : toTime(row.pausedAt),
    endedAt: row.endedAt === null ? null : toTime(row.endedAt),
  }
}

export function toCommand(row: StoredCommand): Command {
  return {
    id: row.id,
    sandbox: row.sandbox,
    argv: row.argv,
    cwd: row.cwd,
    state: row.state,
    exitCode: row.exitCode,
    signal: row.signal,
    timedOut: row.timedOut,
    cause: row.cause,
    truncated: row.truncated,
    outputBytes: row.outputBytes,
    fullOutput: row.fullOutput,
    startedAt: toTime(row.startedAt),
    endedAt: row.endedAt === null ? null : toTime(row.endedAt),
    durationMs: row.endedAt === null ? null : row.endedAt - row.startedAt,
  }
}

export function toSession(row: StoredSession): Session {
  const { actor: _actor, recorded: _recorded, ...shown } = row
  return {
    ...shown,
    createdAt: toTime(row.createdAt),
    lastActiveAt: toTime(row.lastActiveAt),
    expiresAt: toTime(row.expiresAt),
    endedAt: row.endedAt === null ? null : toTime(row.endedAt),
  }
}

/** `where` it ran; `isStarting`: it is not with the data plane yet. */
export function toStep(
  row: StoredStep,
  where: { readonly session: StoredSession; readonly sandbox: Pick<StoredSandbox, 'image' | 'template'> },
  isStarting: boolean,
): Step {
  const { image, template } = where.sandbox
  return {
    id: row.id,
    stepId: row.stepId,
    session: row.session,
    sandbox: row.sandbox,
    status: row.status === 'accepted' && !isStarting ? 'running' : row.status,
    error: row.error,
    cause: row.cause,
    restarted: row.restarted,
    truncated: row.truncated,
    outputBytes: row.outputBytes,
    startedAt: toTime(row.startedAt),
    endedAt: row.endedAt === null ? null : toTime(row.endedAt),
    durationMs: row.endedAt === null ? null : row.endedAt - row.startedAt,
    resourceUsage: row.usage,
    provenance: {
      image: image ?? template,
      runtime: where.session.runtimeVersion,
      policyVersion: row.decision?.policyVersion ?? null,
    },
  }
}

/** What the data plane says of a command, as our row holds it. */
export function toCommandEnd(node: NodeCommand): CommandEnd {
  return {
    state: node.state,
    exitCode: node.exitCode,
    signal: node.signal,
    timedOut: node.timedOut,
    cause: node.cause ?? null,
    truncated: node.truncated,
    outputBytes: node.outputBytes,
    fullOutput: node.full ?? null,
    startedAt: Math.round(node.startedAt),
    endedAt: node.endedAt === null ? null : Math.round(node.endedAt),
  }
}

function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
