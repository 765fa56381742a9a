import type { Command, EndCause, Sandbox, SandboxData } from '@airlock/sdk'
import { formatBytes } from './units.ts'

type Limits = SandboxData['limits']

/** One sentence for people: why it ended, and what helps. Undefined where it ended by itself. */
export function endSentence(
  { cause, signal }: Pick<Command, 'cause'> & Partial<Pick<Command, 'signal'>>,
  limits?: Limits,
): string | undefined {
  if (cause === 'timeout') return 'the command took too long. Raise --timeout.'
  const why = cause === null ? undefined : WHY[cause]?.(limits)
  const how = signal === undefined || signal === null ? 'failed' : 'killed'
  return why === undefined ? undefined : `${how}: ${why}`
}

const WHY: Partial<Record<EndCause, (limits: Limits | undefined) => string>> = {
  out_of_memory: (limits) => `out of memory${limit(limits && formatBytes(limits.memoryBytes))}. Raise --memory.`,
  pids_exhausted: (limits) => `too many processes${limit(limits && String(limits.pids))}. Raise --pids.`,
  disk_full: (limits) => {
    if (limits === undefined) return 'no space left. Raise --disk for /workspace, --memory for /tmp, or remove files.'
    const tmp = formatBytes(Math.floor(limits.memoryBytes / 4))
    return `no space left. /workspace has ${formatBytes(limits.diskBytes)} (--disk), /tmp ${tmp} (a quarter of --memory).`
  },
  cpu_time: () => 'it used up its processor time.',
  forbidden_call: () => 'it made a system call that no sandbox may make.',
}

/** The same of a command, which may have ended with its sandbox: that one knows why. */
export async function explainEnd(command: Command, sandbox: Sandbox): Promise<string | undefined> {
  if (command.cause !== 'killed_by_policy' && command.cause !== 'sandbox_ended')
    return endSentence(command, sandbox.data.limits)
  // The command is over either way; what cannot be asked is left out.
  const known = await sandbox.refresh().catch(() => undefined)
  const order = command.cause === 'killed_by_policy' ? 'killed: its sandbox was ended' : 'its sandbox ended'
  return `${order} (${known?.data.endReason ?? 'nobody can say why'}).`
}

function limit(of: string | undefined): string {
  return of === undefined ? '' : ` (limit ${of})`
}
