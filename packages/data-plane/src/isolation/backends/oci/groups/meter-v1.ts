import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { GroupUsage, Strain } from '../../../backend.ts'
import { CounterFile, keyedIn, numberIn, type CounterReader } from './counter-file.ts'
import { closeAll, type GroupMeter, type GroupReading, heldMemory } from './meter.ts'
import { childrenOf } from './tree.ts'

type Files =
  | 'time'
  | 'throttled'
  | 'memory'
  | 'memoryAndSwap'
  | 'memoryLimit'
  | 'memoryUses'
  | 'guestOom'
  | 'userTime'
  | 'userPeak'
  | 'userOom'
  | 'pids'
  | 'pidsLimit'

/** Where the groups of one sandbox are, in the hierarchies that count. */
export interface MeteredV1 {
  readonly cpuacct: string
  readonly cpu: string
  readonly memory: string
  readonly pids: string
}

/** Counters of version 1. There is no pressure: it is counted in the tree of version 2 alone, and nobody is in there. */
export class MeterV1 implements GroupMeter {
  readonly #files: Readonly<Record<Files, CounterFile>>
  readonly #hasSwap = hasSwap()
  readonly #refused: RefusedForks

  constructor(at: MeteredV1, reader: CounterReader) {
    const file = (dir: string, name: string) => new CounterFile(join(dir, name), reader)
    this.#files = {
      time: file(at.cpuacct, 'cpuacct.usage'),
      throttled: file(at.cpu, 'user/cpu.stat'),
      memory: file(at.memory, 'user/memory.usage_in_bytes'),
      memoryAndSwap: file(at.memory, 'user/memory.memsw.usage_in_bytes'),
      memoryLimit: file(at.memory, 'user/memory.limit_in_bytes'),
      memoryUses: file(at.memory, 'user/memory.stat'),
      guestOom: file(at.memory, 'guest/memory.oom_control'),
      userOom: file(at.memory, 'user/memory.oom_control'),
      userTime: file(at.cpuacct, 'user/cpuacct.usage'),
      userPeak: file(at.memory, 'user/memory.max_usage_in_bytes'),
      pids: file(at.pids, 'user/pids.current'),
      pidsLimit: file(at.pids, 'user/pids.max'),
    }
    this.#refused = new RefusedForks(join(at.pids, 'user'), reader)
  }

  read(): GroupReading | undefined {
    const { time, throttled, memory, memoryLimit, memoryUses, pids, pidsLimit } = this.#files
    const nanoseconds = numberIn(time.text())
    if (nanoseconds === null) return undefined
    const throttledNs = keyedIn(throttled.text(), 'throttled_time')
    const memoryBytes = numberIn(memory.text())
    const memoryLimitBytes = numberIn(memoryLimit.text())
    return {
      cpuMs: Math.floor(nanoseconds / 1e6),
      throttledMs: throttledNs === null ? null : Math.floor(throttledNs / 1e6),
      memoryBytes,
      memoryHeldBytes: heldMemory({ bytes: memoryBytes, limit: memoryLimitBytes }, () =>
        keyedIn(memoryUses.text(), 'total_inactive_file'),
      ),
      swapBytes: this.#swapBytes(memoryBytes),
      pids: numberIn(pids.text()),
      memoryLimitBytes,
      pidsLimit: numberIn(pidsLimit.text()),
      pressure: null,
      ...this.strain(),
    }
  }

  strain(): Strain {
    const { userOom, guestOom } = this.#files
    const user = keyedIn(userOom.text(), 'oom_kill')
    const guest = keyedIn(guestOom.text(), 'oom_kill')
    return { oomKills: user === null ? null : user + (guest ?? 0), pidsRefused: this.#refused.count() }
  }

  quickStrain(child: string | undefined): Strain {
    return { oomKills: keyedIn(this.#files.userOom.text(), 'oom_kill'), pidsRefused: this.#refused.countIn(child) }
  }

  /** Child groups are in the hierarchy of pids alone, so only a single one can be told: it is all of `user`. */
  usage(child: string): GroupUsage | undefined {
    if (!this.#refused.isOnly(child)) return undefined
    const nanoseconds = numberIn(this.#files.userTime.text())
    return {
      cpuMs: nanoseconds === null ? null : nanoseconds / 1e6,
      memoryPeakBytes: numberIn(this.#files.userPeak.text()),
      isWhole: true,
    }
  }

  close(): void {
    closeAll(this.#files)
    this.#refused.close()
  }

  #swapBytes(memoryBytes: number | null): number | null {
    // Without any both are the same, and taken one after the other they would only seem to differ.
    if (!this.#hasSwap) return 0
    const both = numberIn(this.#files.memoryAndSwap.text())
    return both === null || memoryBytes === null ? null : Math.max(0, both - memoryBytes)
  }
}

/**
 * Forks that were refused for the limit of `user`. Version 1 counts them where who forked is, in the group of a command, which
 * goes with it: what one counted after we last looked is lost.
 */
class RefusedForks {
  readonly #dir: string
  readonly #reader: CounterReader
  readonly #own: CounterFile
  readonly #children = new Map<string, { readonly file: CounterFile; count: number }>()
  /** Of groups that are gone. */
  #before = 0

  constructor(dir: string, reader: CounterReader) {
    this.#dir = dir
    this.#reader = reader
    this.#own = new CounterFile(join(dir, 'pids.events'), reader)
  }

  /** Of who is in this group, or in no child of `user`. */
  countIn(child: string | undefined): number | null {
    if (child === undefined) return keyedIn(this.#own.text(), 'max')
    const known = this.#children.get(child)
    const count = keyedIn(this.#hold(child)?.file.text(), 'max')
    if (count !== null || !known) return count
    // The group of a session that is started anew has the same name.
    this.#forget(child, known)
    return keyedIn(this.#hold(child)?.file.text(), 'max')
  }

  /** Whether there is this child of `user`, and no other. */
  isOnly(child: string): boolean {
    return this.#childCount() === 1 && this.countIn(child) !== null
  }

  count(): number | null {
    const own = keyedIn(this.#own.text(), 'max')
    if (own === null) return null
    // Most sandboxes that idle have none.
    if (this.#children.size > 0 || this.#childCount() > 0) this.#look()
    let sum = own + this.#before
    for (const { count } of this.#children.values()) sum += count
    return sum
  }

  close(): void {
    this.#own.close()
    for (const { file } of this.#children.values()) file.close()
    this.#children.clear()
  }

  /** Each group in this one is a link of it, beside its own two. */
  #childCount(): number {
    return (statSync(this.#dir, { throwIfNoEntry: false })?.nlink ?? 2) - 2
  }

  #look(): void {
    for (const name of childrenOf(this.#dir)) this.#hold(name)
    for (const [name, child] of this.#children) {
      const count = keyedIn(child.file.text(), 'max')
      if (count !== null) child.count = count
      else this.#forget(name, child)
    }
  }

  #hold(name: string): { readonly file: CounterFile; count: number } | undefined {
    const known = this.#children.get(name)
    if (known) return known
    const file = CounterFile.open(join(this.#dir, name, 'pids.events'), this.#reader)
    const child = file && { file, count: 0 }
    if (child) this.#children.set(name, child)
    return child
  }

  #forget(name: string, { file, count }: { readonly file: CounterFile; readonly count: number }): void {
    file.close()
    this.#children.delete(name)
    this.#before += count
  }
}

/** The first line is a head. */
function hasSwap(): boolean {
  return readFileSync('/proc/swaps', 'utf8').trim().includes('\n')
}
