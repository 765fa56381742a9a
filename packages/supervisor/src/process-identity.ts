import { readFileSync } from 'node:fs'

/** A process beyond doubt: pids are used again, a pid with its start time is not. */
export interface ProcessIdentity {
  readonly pid: number
  readonly startTicks: string
}

/** Undefined when there is no such process, or only its exit status is left of it. */
export function identify(pid: number): ProcessIdentity | undefined {
  const fields = statOf(pid)
  const startTicks = fields?.[19]
  return startTicks === undefined || fields?.[0] === 'Z' ? undefined : { pid, startTicks }
}

export function lives({ pid, startTicks }: ProcessIdentity): boolean {
  return identify(pid)?.startTicks === startTicks
}

/** Whether we lead a session of our own, as `setsid` makes one. */
export function leadsSession(): boolean {
  return statOf(process.pid)?.[3] === String(process.pid)
}

/** The fields of `/proc/<pid>/stat` from the state on; undefined when there is no such process. */
function statOf(pid: number): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    // No such process.
    return undefined
  }
}
