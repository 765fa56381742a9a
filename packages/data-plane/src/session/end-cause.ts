import type { EndCause } from '@airlock/contract'
import type { GuestCommandEnd } from '@airlock/contract/guest'
import { z } from 'zod'

/** How often the kernel denied user code what it asked for, since the start of the sandbox; null where it does not count. */
export const strain = z.strictObject({ oomKills: z.number().nullable(), pidsRefused: z.number().nullable() })
export type Strain = z.infer<typeof strain>

/** What is seen outside of something that failed. */
export interface SeenOutside {
  readonly before: Strain | null
  readonly after: Strain | null
  /** Of each of its processes, where the caller set one. */
  readonly cpuSeconds: number | undefined
  readonly ranMs: number
  isDiskFull(): Promise<boolean>
}

/** What ended well needs no look outside: nothing that happened on the way ended it. */
export function endedWell({ exitCode, signal, timedOut }: GuestCommandEnd): boolean {
  return exitCode === 0 && signal === null && !timedOut
}

/**
 * Why it failed: the first of these that is true, the most certain first. A deadline is our own doing; a signal of the kernel
 * says what it is for; a counter that grew while it ran is more than a disk that is full now.
 */
export async function causeOf(end: GuestCommandEnd, seen: SeenOutside): Promise<EndCause> {
  if (end.timedOut) return 'timeout'
  if (isBy(end, 'SIGSYS')) return 'forbidden_call'
  if (isBy(end, 'SIGXCPU')) return 'cpu_time'
  return causeByLimits(end, seen) ?? (await causeByPlace(end, seen))
}

function causeByLimits(end: GuestCommandEnd, seen: SeenOutside): EndCause | undefined {
  if (isOwnOr(end, ['SIGKILL']) && grew(seen, 'oomKills')) return 'out_of_memory'
  if (isBy(end, 'SIGKILL') && isSpent(seen)) return 'cpu_time'
  const isRefused = grew(seen, 'pidsRefused') || (end.forksRefused ?? 0) > 0
  return isOwnOr(end, ['SIGABRT']) && isRefused ? 'pids_exhausted' : undefined
}

async function causeByPlace(end: GuestCommandEnd, seen: SeenOutside): Promise<EndCause> {
  if (isOwnOr(end, ['SIGABRT', 'SIGBUS']) && (await seen.isDiskFull())) return 'disk_full'
  return end.signal === null ? 'exit' : 'signal'
}

/** A shell tells the signal of what it ran by 128 and its number. */
const SHELL_CODES = { SIGKILL: 137, SIGXCPU: 152, SIGSYS: 159 } as const

function isBy({ signal, exitCode }: GuestCommandEnd, name: keyof typeof SHELL_CODES): boolean {
  return signal === name || (signal === null && exitCode === SHELL_CODES[name])
}

/** It ended itself, or by one of the signals that what it ran into is known for. */
function isOwnOr({ signal }: GuestCommandEnd, signals: readonly string[]): boolean {
  return signal === null || signals.includes(signal)
}

function grew({ before, after }: SeenOutside, counter: keyof Strain): boolean {
  return (after?.[counter] ?? 0) > (before?.[counter] ?? Infinity)
}

/** Whoever does not heed SIGXCPU is killed a second later: it ran at least so long. */
function isSpent({ cpuSeconds, ranMs }: SeenOutside): boolean {
  return cpuSeconds !== undefined && ranMs >= cpuSeconds * 1000
}
