import { INSIDE, type GuestGroups } from '@airlock/contract/guest'
import { chownSync, existsSync, mkdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SandboxStats, Strain } from '../../../backend.ts'
import { isSystemError } from '../system-error.ts'
import { inUse, writeAllOrNone } from './change-limits.ts'
import type { CounterReader } from './counter-file.ts'
import {
  CPU_PERIOD_US,
  firstGroup,
  GUEST_LIMITS,
  type Bind,
  type GroupEntry,
  type GroupLimits,
  type Groups,
  type GroupSpec,
  type GroupWrite,
} from './groups.ts'
import { MeterV2 } from './meter-v2.ts'
import type { GroupMeter } from './meter.ts'
import {
  childrenOf,
  holdsFirst,
  keyed,
  pidsBelow,
  readKernel,
  removeTree,
  signalAll,
  writeIfThere,
  writeKernel,
} from './tree.ts'

export const CONTROLLERS_V2 = ['memory', 'pids', 'cpu'] as const
const ENABLE = CONTROLLERS_V2.map((name) => `+${name}`).join(' ')

/**
 * Control groups of version 2. A group whose controllers are passed on may hold no process, and a cgroup namespace is
 * rooted where its maker is; so the launcher enters the sandbox's group while it is plain, makes the namespace, moves on
 * to `guest`, and only then passes the controllers on and sets the limits.
 *
 * Preconditions: the root offers all of `CONTROLLERS_V2`.
 */
export class GroupsV2 implements Groups {
  readonly kind = 'v2'
  readonly lowersByKilling = true
  readonly limits = ['memory', 'swap', 'pids', 'cpu'] as const
  /** The group under which ours may be, as a directory. */
  readonly #root: string
  readonly #mountPoint: string
  readonly #parent: string

  constructor(place: { root: string; mountPoint: string }, parent: string) {
    this.#root = place.root
    this.#mountPoint = place.mountPoint
    this.#parent = parent
  }

  make(id: string, spec: GroupSpec): GroupEntry {
    writeKernel(join(this.#root, 'cgroup.subtree_control'), ENABLE)
    mkdirSync(join(this.#root, this.#parent), { recursive: true })
    writeKernel(join(this.#root, this.#parent, 'cgroup.subtree_control'), ENABLE)
    for (const name of ['guest', 'user']) mkdirSync(this.#group(id, name), { recursive: true })
    // Who moves a process must be able to write where both groups meet.
    for (const path of ['cgroup.procs', 'user', 'user/cgroup.procs'])
      chownSync(this.#group(id, path), spec.owner, spec.owner)
    return {
      enter: [[this.#group(id, 'cgroup.procs'), '0']],
      settle: [
        [this.#group(id, `${firstGroup(spec)}/cgroup.procs`), '0'],
        [this.#group(id, 'cgroup.subtree_control'), ENABLE],
        ...this.#limitWrites(id, 'guest', GUEST_LIMITS),
        ...this.#limitWrites(id, 'user', spec.limits),
      ],
    }
  }

  async change(id: string, limits: GroupLimits): Promise<void> {
    await this.#makeRoom(id, limits.memoryBytes)
    await writeAllOrNone(this.#limitWrites(id, 'user', limits))
  }

  inside(id: string): { binds: readonly Bind[]; guest: GuestGroups } {
    const commands = `${INSIDE.groups}/user`
    return {
      binds: [{ source: this.#group(id, 'user'), destination: commands }],
      guest: { join: [], commands, joinFile: 'cgroup.procs', kill: 'cgroup.kill' },
    }
  }

  runtimePath(id: string): string {
    return this.#group(id, 'guest').slice(this.#mountPoint.length)
  }

  freeze(id: string): void {
    writeIfThere(this.#group(id, 'cgroup.freeze'), '1')
  }

  thaw(id: string): void {
    writeIfThere(this.#group(id, 'cgroup.freeze'), '0')
  }

  isFrozen(id: string): boolean {
    return keyed(readKernel(this.#group(id, 'cgroup.events')), 'frozen') === 1
  }

  refuseForks(id: string): void {
    writeIfThere(this.#group(id, 'pids.max'), '0')
  }

  kill(id: string): void {
    const file = this.#group(id, 'cgroup.kill')
    // Kernels before 5.14 have no such file.
    if (existsSync(file)) writeIfThere(file, '1')
    else signalAll(this.pids(id))
  }

  pids(id: string): readonly number[] {
    return pidsBelow(this.#group(id, ''))
  }

  holdsGuest(id: string, pid: number): boolean {
    return holdsFirst((name) => this.#group(id, `${name}/cgroup.procs`), pid)
  }

  remove(id: string): boolean {
    if (!removeTree(this.#group(id, ''))) return false
    const parent = join(this.#root, this.#parent)
    // The parent goes with its last sandbox.
    if (childrenOf(parent).length === 0) removeTree(parent)
    return true
  }

  ids(): readonly string[] {
    return childrenOf(join(this.#root, this.#parent))
  }

  stats(id: string): SandboxStats | undefined {
    if (!existsSync(this.#group(id, ''))) return undefined
    const read = (file: string) => readKernel(this.#group(id, file))
    const number = (text: string | undefined) => (text === undefined ? null : Number(text))
    const usec = keyed(read('cpu.stat'), 'usage_usec')
    return {
      processes: this.pids(id).length,
      memoryBytes: number(read('memory.current')),
      memoryPeakBytes: number(read('memory.peak')),
      cpuMs: usec === undefined ? null : Math.floor(usec / 1000),
      oomKills: keyed(read('memory.events'), 'oom_kill') ?? null,
    }
  }

  meter(id: string, reader: CounterReader): GroupMeter {
    return new MeterV2(this.#group(id, ''), reader)
  }

  denied(id: string, name: 'guest' | 'user'): Strain {
    const killed = keyed(readKernel(this.#group(id, `${name}/memory.events`)), 'oom_kill')
    const refused = keyed(readKernel(this.#group(id, `${name}/pids.events`)), 'max')
    return { oomKills: killed ?? null, pidsRefused: refused ?? null }
  }

  /** Takes back what can be had again, such as the cache of files; what is left then is really used. */
  async #makeRoom(id: string, bytes: number): Promise<void> {
    const used = () => Number(readKernel(this.#group(id, 'user/memory.current')) ?? 0)
    if (used() > bytes)
      await writeFile(this.#group(id, 'user/memory.reclaim'), String(used() - bytes), { flag: 'r+' }).catch(
        (error: unknown) => {
          // Not all of it could be had, or the kernel is older than 5.19: what counts is what is used afterwards.
          if (!isSystemError(error, 'EAGAIN', 'ENOENT')) throw error
        },
      )
    if (used() > bytes) throw inUse()
  }

  #limitWrites(id: string, name: 'guest' | 'user', limits: GroupLimits): readonly GroupWrite[] {
    const file = (control: string) => this.#group(id, `${name}/${control}`)
    return [
      [file('memory.max'), String(limits.memoryBytes)],
      [file('memory.swap.max'), '0'],
      [file('memory.oom.group'), '0'],
      [file('pids.max'), String(limits.pids)],
      [file('cpu.max'), `${Math.round(limits.cpus * CPU_PERIOD_US)} ${CPU_PERIOD_US}`],
    ]
  }

  #group(id: string, below: string): string {
    return join(this.#root, this.#parent, id, below)
  }
}
