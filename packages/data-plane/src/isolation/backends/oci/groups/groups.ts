import type { Limits } from '@airlock/contract'
import type { GuestGroups } from '@airlock/contract/guest'
import type { SandboxStats, Strain } from '../../../backend.ts'
import type { CounterReader } from './counter-file.ts'
import type { CgroupKind } from './hierarchies.ts'
import type { GroupMeter } from './meter.ts'

/**
 * The control groups of sandboxes, over every kind of host. A sandbox has one group with two below it: `guest`, for our
 * program and the runtime that starts it, and `user`, which carries the limits, so that what user code does to its memory
 * never hits the guest. `user` is delegated to the namespace's root, which makes a child group for each command.
 *
 * Everything is synchronous: each call is a few small writes to kernel files, and nothing can come between them.
 */
export interface Groups {
  readonly kind: CgroupKind
  readonly limits: readonly ('memory' | 'swap' | 'pids' | 'cpu')[]

  /** Makes the groups of a sandbox and sets its limits. Throws when one cannot be set: fails closed. */
  make(id: string, spec: GroupSpec): GroupEntry

  /**
   * Holds user code to other limits from now on: all of them or none. Memory that it uses already is `limit_in_use`.
   * Precondition where `lowersByKilling`: nothing in the sandbox runs while memory is lowered.
   */
  change(id: string, limits: GroupLimits): Promise<void>

  /** This kernel ends processes to get below a lower limit of memory, instead of refusing it. */
  readonly lowersByKilling: boolean

  /** What to bind where inside, and what to tell the guest about it. */
  inside(id: string): { readonly binds: readonly Bind[]; readonly guest: GuestGroups }

  /** Where the runtime finds the group of the guest, for a runtime that insists on joining one itself. */
  runtimePath(id: string): string

  freeze(id: string): void
  thaw(id: string): void
  isFrozen(id: string): boolean

  /** Lets no process of the sandbox fork again. */
  refuseForks(id: string): void

  /** Sends SIGKILL to every process of the sandbox. Version 1: those that are frozen die when thawed. */
  kill(id: string): void

  /** Every process in any group of the sandbox, as the host numbers them. */
  pids(id: string): readonly number[]

  /** Whether the process is where the first one of the sandbox is: proof that a pid is still who it was. */
  holdsGuest(id: string, pid: number): boolean

  /** Removes the groups of a sandbox from every hierarchy. False while a process is still in one. */
  remove(id: string): boolean

  /** Ids of all sandboxes of this server that have a group in any hierarchy. */
  ids(): readonly string[]

  stats(id: string): SandboxStats | undefined

  /** The counters of a sandbox, kept open once they are read. */
  meter(id: string, reader: CounterReader): GroupMeter

  /** What was denied to who was in one of the two groups itself, also when nobody is left in it. */
  denied(id: string, name: 'guest' | 'user'): Strain
}

/** What groups hold a sandbox to. */
export type GroupLimits = Pick<Limits, 'memoryBytes' | 'pids' | 'cpus'>

export interface GroupSpec {
  readonly limits: GroupLimits
  /** The host uid of the namespace's root. */
  readonly owner: number
  /** Guest and user code are one process to this kernel: everything enters `user`, whose limits then hold for both. */
  readonly isWhole?: boolean
}

/** Lines of a file that the launcher writes elsewhere: the file, then the value. */
export type GroupWrite = readonly [file: string, value: string]

/** How the launcher gets in: `enter`, then a cgroup namespace of its own, then `settle`. */
export interface GroupEntry {
  readonly enter: readonly GroupWrite[]
  readonly settle: readonly GroupWrite[]
}

export interface Bind {
  readonly source: string
  readonly destination: string
}

/** What the guest itself may use; nothing of it is shared with user code. */
export const GUEST_LIMITS = { memoryBytes: 256 * 1024 * 1024, pids: 64, cpus: 1 } as const

export const CPU_PERIOD_US = 100_000

/** The group of the first process of a sandbox. */
export function firstGroup({ isWhole = false }: GroupSpec): 'guest' | 'user' {
  return isWhole ? 'user' : 'guest'
}
