import type { Command, NodeCommand, Sandbox } from '@airlock/contract'
import type { CommandEnd, StoredCommand } from '../store/commands.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'

/** A row as callers see it. */
export function toSandbox(row: StoredSandbox): Sandbox {
  const { bootId: _bootId, actor: _actor, recorded: _recorded, ...shown } = row
  return {
    ...shown,
    createdAt: toTime(row.createdAt),
    lastActiveAt: toTime(row.lastActiveAt),
    expiresAt: toTime(row.expiresAt),
    endsAt: toTime(row.endsAt),
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
    truncated: row.truncated,
    outputBytes: row.outputBytes,
    startedAt: toTime(row.startedAt),
    endedAt: row.endedAt === null ? null : toTime(row.endedAt),
    durationMs: row.endedAt === null ? null : row.endedAt - row.startedAt,
  }
}

/** What the data plane says of a command, as our row holds it. */
export function toCommandEnd(node: NodeCommand): CommandEnd {
  return {
    state: node.state,
    exitCode: node.exitCode,
    signal: node.signal,
    timedOut: node.timedOut,
    truncated: node.truncated,
    outputBytes: node.outputBytes,
    startedAt: Math.round(node.startedAt),
    endedAt: node.endedAt === null ? null : Math.round(node.endedAt),
  }
}

function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
