import type { NodeSample } from '@airlock/contract'
import type { GroupUsage, Strain } from '../../../backend.ts'
import type { CounterFile } from './counter-file.ts'

/** What the groups of a sandbox have counted; null is what this kernel does not tell. */
export interface GroupReading extends Strain {
  readonly cpuMs: number | null
  readonly throttledMs: number | null
  readonly memoryBytes: number | null
  /** Without files that the kernel keeps in memory and would give up at once: what is written stays there until somebody needs the room. */
  readonly memoryHeldBytes: number | null
  readonly swapBytes: number | null
  readonly pids: number | null
  /** What the kernel holds user code to. */
  readonly memoryLimitBytes: number | null
  readonly pidsLimit: number | null
  readonly pressure: NodeSample['pressure']
}

/**
 * The counters of one sandbox, kept open. Everything is synchronous and takes microseconds. Whoever opens one closes it: open
 * files of a group that is gone hold what is left of it in the kernel.
 */
export interface GroupMeter {
  /** Undefined when the groups are gone. */
  read(): GroupReading | undefined
  strain(): Strain
  /** The same of user code alone and as far as it is cheap, two reads: of everything together, or of one child group. */
  quickStrain(child: string | undefined): Strain
  /** What the child group has used. Undefined when it is gone, or cannot be told apart from others. */
  usage(child: string): GroupUsage | undefined
  close(): void
}

/** From this share of the limit on it is worth a longer look at what memory is used for. */
const LOOKED_FROM = 0.5

/** `idleFiles` says how many bytes of files nobody used for a while. */
export function heldMemory(
  used: { readonly bytes: number | null; readonly limit: number | null },
  idleFiles: () => number | null,
): number | null {
  const { bytes, limit } = used
  if (bytes === null || limit === null || bytes < limit * LOOKED_FROM) return bytes
  return Math.max(0, bytes - (idleFiles() ?? 0))
}

export function closeAll(files: Readonly<Record<string, CounterFile>>): void {
  for (const file of Object.values(files)) file.close()
}
