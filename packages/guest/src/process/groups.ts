import { closeSync, constants, mkdirSync, openSync, readFileSync, rmdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { GuestGroups } from '@airlock/contract/guest'
import { errnoOf } from '../failure.ts'

const SWEEP_MS = 1000
const KILL_ROUNDS = 400
const KILL_PAUSE_MS = 5

/** How the processes of a command or an interpreter are kept together, so that all of them can be ended. */
export interface LaunchGroups {
  make(name: string): void
  /** The file into which a new process of the group writes `0`. */
  joinFile(name: string): string
  /** Ends every process of the group. `leader` may not have entered it yet, so its process group is killed too. */
  kill(name: string, leader: number): Promise<void>
  /** Waits until nothing is left in a group that was killed, and lets it be entered again. False when something will not go. */
  reset(name: string): Promise<boolean>
  /** How many forks the kernel refused in it, as far as it counts them there, and not since we ended it. */
  refusedForks(name: string): number
  /** Removes the group, now or when its last process has gone. */
  release(name: string): void
}

/** The child group of each command: what ends a whole tree, also one that left its session and process group. */
export class CommandGroups implements LaunchGroups {
  readonly #groups: GuestGroups
  /** Groups whose command ended while something of it still runs. */
  readonly #leftover = new Set<string>()
  /** Groups that may not fork because we said so. */
  readonly #barred = new Set<string>()
  #sweep: NodeJS.Timeout | undefined

  constructor(groups: GuestGroups) {
    this.#groups = groups
  }

  make(name: string): void {
    mkdirSync(this.#path(name))
  }

  joinFile(name: string): string {
    return join(this.#path(name), this.#groups.joinFile)
  }

  /** Ends every process of the group. `leader` may not have entered it yet, so its process group is killed too. */
  async kill(name: string, leader: number): Promise<void> {
    signalProcess(-leader, 'SIGKILL')
    if (this.#groups.kill === 'cgroup.kill') this.#write(name, 'cgroup.kill', '1')
    else await this.#killEach(name)
  }

  /** Waits until nothing is left in a group that was killed, and lets it be entered again. False when something will not go. */
  async reset(name: string): Promise<boolean> {
    for (let round = 0; round < KILL_ROUNDS && this.#pids(name).length > 0; round++)
      await new Promise((resolve) => setTimeout(resolve, KILL_PAUSE_MS))
    if (this.#groups.kill === 'pids.max') this.#write(name, 'pids.max', 'max')
    this.#barred.delete(name)
    return this.#pids(name).length === 0
  }

  refusedForks(name: string): number {
    if (this.#barred.has(name)) return 0
    const [, count = '0'] = /^max (\d+)$/m.exec(this.#read(name, 'pids.events') ?? '') ?? []
    return Number(count)
  }

  /** Removes the group, now or when its last process has gone. */
  release(name: string): void {
    this.#barred.delete(name)
    if (this.#remove(name)) return
    this.#leftover.add(name)
    this.#sweep ??= setInterval(() => this.#removeLeftover(), SWEEP_MS).unref()
  }

  async #killEach(name: string): Promise<void> {
    this.#barred.add(name)
    this.#write(name, 'pids.max', '0')
    for (let round = 0; round < KILL_ROUNDS; round++) {
      const pids = this.#pids(name)
      if (pids.length === 0) return
      for (const pid of pids) signalProcess(pid, 'SIGKILL')
      await new Promise((resolve) => setTimeout(resolve, KILL_PAUSE_MS))
    }
  }

  #pids(name: string): readonly number[] {
    const text = this.#read(name, 'cgroup.procs') ?? ''
    // 0 is a process of another namespace, 1 is the reaper: neither is ever a command's.
    return text.split('\n').flatMap((line) => (Number(line) > 1 ? [Number(line)] : []))
  }

  /** Undefined when the group is gone, or this kernel has no such file. */
  #read(name: string, file: string): string | undefined {
    try {
      return readFileSync(join(this.#path(name), file), 'utf8')
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined
      throw error
    }
  }

  #write(name: string, file: string, text: string): void {
    try {
      const fd = openSync(join(this.#path(name), file), constants.O_WRONLY)
      try {
        writeSync(fd, text)
      } finally {
        closeSync(fd)
      }
    } catch (error) {
      // A group that is gone has no process left.
      if (errnoOf(error) !== 'ENOENT') throw error
    }
  }

  #removeLeftover(): void {
    for (const name of this.#leftover) if (this.#remove(name)) this.#leftover.delete(name)
    if (this.#leftover.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }

  #remove(name: string): boolean {
    try {
      rmdirSync(this.#path(name))
      return true
    } catch (error) {
      return errnoOf(error) === 'ENOENT'
    }
  }

  #path(name: string): string {
    return join(this.#groups.commands, name)
  }
}

/** False when there is nobody to signal any more. */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return false
    throw error
  }
}
