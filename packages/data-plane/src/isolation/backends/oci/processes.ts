import { parseProcessStat } from '@airlock/std'
import { readFileSync } from 'node:fs'
import { isSystemError } from './system-error.ts'

/** When the process started, in clock ticks since boot; undefined when there is none or it is a zombie. */
export function startTimeOf(pid: number): string | undefined {
  const text = readProc(`/proc/${pid}/stat`)
  const stat = text === undefined ? undefined : parseProcessStat(text)
  return stat?.isZombie === false ? stat.startTicks : undefined
}

/** The pid that a runtime wrote; undefined when there is none. Never 0 or 1. */
export function readPidFile(path: string): number | undefined {
  const pid = Number(readProc(path)?.trim())
  return Number.isSafeInteger(pid) && pid > 1 ? pid : undefined
}

/** Our own hard limit of open files: nothing that we start can have more. */
export function maxOpenFiles(): number {
  const line = /^Max open files\s+\S+\s+(\S+)/mu.exec(readFileSync('/proc/self/limits', 'utf8'))
  const limit = Number(line?.[1])
  return Number.isSafeInteger(limit) ? limit : 1024
}

/** How many processes and threads the host can tell apart. */
export function maxPids(): number {
  return Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'))
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ESRCH')) return undefined
    throw error
  }
}
