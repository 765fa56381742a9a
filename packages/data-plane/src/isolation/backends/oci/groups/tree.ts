import { isSystemError } from '../system-error.ts'
import { readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Reads a kernel file; undefined when the group is gone. */
export function readKernel(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENODEV')) return undefined
    throw error
  }
}

/** Writes to a kernel file that must exist: an open that creates would be refused with a misleading reason. */
export function writeKernel(path: string, value: string): void {
  writeFileSync(path, value, { flag: 'r+' })
}

/** Like `writeKernel`, but a group that is gone is no fault: there is nobody in it. */
export function writeIfThere(path: string, value: string): void {
  try {
    writeKernel(path, value)
  } catch (error) {
    if (!isSystemError(error, 'ENOENT', 'ENODEV')) throw error
  }
}

/** A group and everything below it, deepest first. Empty when it is gone. */
function groupsBelow(dir: string): readonly string[] {
  return [...childrenOf(dir).flatMap((name) => groupsBelow(join(dir, name))), dir]
}

/** Names of the groups directly in this one. */
export function childrenOf(dir: string): readonly string[] {
  try {
    // Each group in this one is a link of it, beside its own two: most have none, and their many files need no listing.
    if (statSync(dir, { throwIfNoEntry: false })?.nlink === 2) return []
    return readdirSync(dir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENODEV')) return []
    throw error
  }
}

/** The processes in this group and all below it. */
export function pidsBelow(dir: string): readonly number[] {
  return groupsBelow(dir).flatMap((group) => pidsIn(group))
}

/** The processes in this very group. */
export function pidsIn(group: string): readonly number[] {
  return numbers(readKernel(join(group, 'cgroup.procs')))
}

/** Whether the process is in `guest`, or in `user` while nobody is in `guest`: there a whole sandbox is one process. */
export function holdsFirst(procs: (name: 'guest' | 'user') => string, pid: number): boolean {
  const guest = numbers(readKernel(procs('guest')))
  return (guest.length > 0 ? guest : numbers(readKernel(procs('user')))).includes(pid)
}

/** SIGKILL, never to 0 or 1: those are our own process group and the host's init. */
export function signalAll(pids: readonly number[]): void {
  for (const pid of pids.filter((number) => number > 1))
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if (!isSystemError(error, 'ESRCH')) throw error
    }
}

/** Removes a group and all below it. False while a process is in one; true when it is gone. */
export function removeTree(dir: string): boolean {
  return groupsBelow(dir).every((group) => removeGroup(group))
}

function removeGroup(group: string): boolean {
  try {
    rmdirSync(group)
    return true
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return true
    // Not empty: a new child group came between listing and removing.
    if (isSystemError(error, 'EBUSY', 'ENOTEMPTY')) return false
    throw error
  }
}

/** The value after a key, as in `memory.events` and `cpu.stat`. */
export function keyed(text: string | undefined, key: string): number | undefined {
  const line = text?.split('\n').find((entry) => entry.startsWith(`${key} `))
  return line === undefined ? undefined : Number(line.slice(key.length + 1))
}

function numbers(text: string | undefined): readonly number[] {
  return (text ?? '').split('\n').filter(Boolean).map(Number)
}
