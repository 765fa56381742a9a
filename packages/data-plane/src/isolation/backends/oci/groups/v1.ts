import { AirlockError, type Limits } from '@airlock/contract'
import { INSIDE, type GuestGroups } from '@airlock/contract/guest'
import { chownSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { GroupUsage, SandboxStats } from '../../../backend.ts'
import {
  CPU_PERIOD_US,
  firstGroup,
  GUEST_LIMITS,
  type Bind,
  type GroupEntry,
  type Groups,
  type GroupSpec,
} from './groups.ts'
import type { Hierarchy } from './hierarchies.ts'
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

/** The controllers we need. The freezer is first: whoever is in any of our groups can then be frozen. */
const CONTROLLERS = ['freezer', 'pids', 'memory', 'cpu', 'cpuacct'] as const
type Controller = (typeof CONTROLLERS)[number]

/** Control groups of version 1, alone or beside a version 2 tree without controllers. */
export class GroupsV1 implements Groups {
  readonly kind: 'v1' | 'hybrid'
  readonly limits: readonly ('memory' | 'swap' | 'pids' | 'cpu')[]
  readonly #parent: string
  readonly #all: readonly Hierarchy[]
  readonly #mounts: Readonly<Record<Controller, string>>
  /** Hierarchies that we join, each once, though controllers may share one. */
  readonly #joined: readonly Controller[]

  constructor(kind: 'v1' | 'hybrid', hierarchies: readonly Hierarchy[], parent: string) {
    this.kind = kind
    this.#parent = parent
    this.#all = hierarchies
    const mount = (controller: Controller) => mountOf(hierarchies, controller)
    this.#mounts = {
      freezer: mount('freezer'),
      pids: mount('pids'),
      memory: mount('memory'),
      cpu: mount('cpu'),
      cpuacct: mount('cpuacct'),
    }
    this.#joined = CONTROLLERS.filter(
      (name, at) => !CONTROLLERS.slice(0, at).some((other) => this.#mounts[other] === this.#mounts[name]),
    )
    const swap = existsSync(join(this.#mounts.memory, 'memory.memsw.limit_in_bytes'))
    this.limits = ['memory', ...(swap ? (['swap'] as const) : []), 'pids', 'cpu']
  }

  make(id: string, spec: GroupSpec): GroupEntry {
    for (const controller of this.#joined)
      for (const name of ['guest', 'user']) mkdirSync(this.#group(controller, id, name), { recursive: true })
    this.#limit(id, 'user', spec.limits)
    this.#limit(id, 'guest', GUEST_LIMITS)
    // Joining is delegated in every hierarchy, making groups only where commands get theirs.
    for (const controller of this.#joined) chownSync(this.#group(controller, id, 'user/tasks'), spec.owner, spec.owner)
    chownSync(this.#group('pids', id, 'user'), spec.owner, spec.owner)
    return {
      enter: this.#joined.map((controller) => [this.#group(controller, id, 'tasks'), '0'] as const),
      settle: this.#joined.map(
        (controller) => [this.#group(controller, id, `${firstGroup(spec)}/tasks`), '0'] as const,
      ),
    }
  }

  inside(id: string): { binds: readonly Bind[]; guest: GuestGroups } {
    const at = (controller: Controller) => `${INSIDE.groups}/${controller}`
    return {
      binds: this.#joined.map((controller) => ({
        source: this.#group(controller, id, 'user'),
        destination: at(controller),
      })),
      guest: {
        join: this.#joined.filter((controller) => controller !== 'pids').map((name) => `${at(name)}/tasks`),
        commands: at('pids'),
        joinFile: 'tasks',
        kill: 'pids.max',
      },
    }
  }

  runtimePath(id: string): string {
    return `/${this.#parent}/${id}/guest`
  }

  freeze(id: string): void {
    writeIfThere(this.#group('freezer', id, 'freezer.state'), 'FROZEN')
  }

  thaw(id: string): void {
    writeIfThere(this.#group('freezer', id, 'freezer.state'), 'THAWED')
  }

  isFrozen(id: string): boolean {
    return readKernel(this.#group('freezer', id, 'freezer.state'))?.trim() === 'FROZEN'
  }

  refuseForks(id: string): void {
    writeIfThere(this.#group('pids', id, 'pids.max'), '0')
  }

  kill(id: string): void {
    signalAll(this.pids(id))
  }

  pids(id: string): readonly number[] {
    // A process on its way in or out is in some hierarchies only.
    return [...new Set(this.#everywhere(id).flatMap((dir) => pidsBelow(dir)))]
  }

  holdsGuest(id: string, pid: number): boolean {
    return holdsFirst((name) => this.#group('pids', id, `${name}/cgroup.procs`), pid)
  }

  remove(id: string): boolean {
    const removed = this.#everywhere(id).map((dir) => removeTree(dir))
    if (removed.includes(false)) return false
    // The parent goes with its last sandbox; it is busy while there are others.
    for (const { mountPoint } of this.#all)
      if (childrenOf(join(mountPoint, this.#parent)).length === 0) removeTree(join(mountPoint, this.#parent))
    return true
  }

  ids(): readonly string[] {
    return [...new Set(this.#all.flatMap(({ mountPoint }) => childrenOf(join(mountPoint, this.#parent))))]
  }

  stats(id: string): SandboxStats | undefined {
    const usage = readKernel(this.#group('memory', id, 'memory.usage_in_bytes'))
    if (usage === undefined) return undefined
    const peak = readKernel(this.#group('memory', id, 'memory.max_usage_in_bytes'))
    const cpu = readKernel(this.#group('cpuacct', id, 'cpuacct.usage'))
    const kills = ['guest', 'user'].map((name) =>
      keyed(readKernel(this.#group('memory', id, `${name}/memory.oom_control`)), 'oom_kill'),
    )
    return {
      processes: this.pids(id).length,
      memoryBytes: Number(usage),
      memoryPeakBytes: peak === undefined ? null : Number(peak),
      cpuMs: cpu === undefined ? null : Math.floor(Number(cpu) / 1e6),
      oomKills: kills.reduce<number>((sum, count) => sum + (count ?? 0), 0),
    }
  }

  /** Child groups are in the hierarchy of pids alone, so only a single one can be told: it is all of `user`. */
  usage(id: string, child: string): GroupUsage | undefined {
    const children = childrenOf(this.#group('pids', id, 'user'))
    if (children.length !== 1 || children[0] !== child) return undefined
    const cpu = readKernel(this.#group('cpuacct', id, 'user/cpuacct.usage'))
    const peak = readKernel(this.#group('memory', id, 'user/memory.max_usage_in_bytes'))
    return {
      cpuMs: cpu === undefined ? null : Number(cpu) / 1e6,
      memoryPeakBytes: peak === undefined ? null : Number(peak),
      isWhole: true,
    }
  }

  #limit(id: string, name: 'guest' | 'user', limits: Pick<Limits, 'memoryBytes' | 'pids' | 'cpus'>): void {
    const set = (controller: Controller, file: string, value: number) =>
      writeKernel(join(this.#group(controller, id, name), file), String(value))
    set('memory', 'memory.limit_in_bytes', limits.memoryBytes)
    // Memory and swap together: none of it may be swapped away and used again.
    if (this.limits.includes('swap')) set('memory', 'memory.memsw.limit_in_bytes', limits.memoryBytes)
    set('pids', 'pids.max', limits.pids)
    set('cpu', 'cpu.cfs_period_us', CPU_PERIOD_US)
    set('cpu', 'cpu.cfs_quota_us', Math.round(limits.cpus * CPU_PERIOD_US))
  }

  #group(controller: Controller, id: string, below: string): string {
    return join(this.#mounts[controller], this.#parent, id, below)
  }

  /** A runtime may have made groups in hierarchies that we do not use. */
  #everywhere(id: string): readonly string[] {
    return this.#all.map(({ mountPoint }) => join(mountPoint, this.#parent, id))
  }
}

function mountOf(hierarchies: readonly Hierarchy[], controller: Controller): string {
  const found = hierarchies.find(({ version, controllers }) => version === 1 && controllers.includes(controller))
  if (!found) throw new AirlockError('isolation_unavailable', `The cgroup controller "${controller}" is not mounted.`)
  return found.mountPoint
}
