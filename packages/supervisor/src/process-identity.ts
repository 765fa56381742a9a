import { readFileSync } from 'node:fs'
import { parseProcessStat, type ProcessStat } from '@airlock/std'

/** A process beyond doubt: pids are used again, a pid with its start time is not. */
export interface ProcessIdentity {
  readonly pid: number
  readonly startTicks: string
}

/** Undefined when there is no such process, or only its exit status is left of it. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = statOf(pid)
  return stat === undefined || stat.isZombie ? undefined : { pid, startTicks: stat.startTicks }
}

export function lives({ pid, startTicks }: ProcessIdentity): boolean {
  return identify(pid)?.startTicks === startTicks
}

/** Whether we lead a session of our own, as `setsid` makes one. */
export function leadsSession(): boolean {
  return statOf(process.pid)?.session === process.pid
}

function statOf(pid: number): ProcessStat | undefined {
  try {
    return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // No such process.
    return undefined
  }
}
