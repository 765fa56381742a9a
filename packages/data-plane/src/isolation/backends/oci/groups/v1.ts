import { AirlockError } from '@airlock/contract'
import { INSIDE, type GuestGroups } from '@airlock/contract/guest'
import { chownSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { SandboxStats, Strain } from '../../../backend.ts'
import { writeAllOrNone } from './change-limits.ts'
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
import type { Hierarchy } from './hierarchies.ts'
import { MeterV1 } from './meter-v1.ts'
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

/** The controllers we need. The freezer is first: whoever is in any of our groups can then be frozen. */
const CONTROLLERS = ['freezer', 'pids', 'memory', 'cpu', 'cpuacct'] as const
type Controller = (typeof CONTROLLERS)[number]

/** Control groups of version 1, alone or beside a version 2 tree without controllers. */
export class GroupsV1 implements Groups {
  readonly kind: 'v1' | 'hybrid'
  readonly lowersByKilling = false
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

  async change(id: string, limits: GroupLimits): Promise<void> {
    await writeAllOrNone(this.#limitWrites(id, 'user', limits))
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

  meter(id: string, reader: CounterReader): GroupMeter {
    const at = (controller: Controller) => this.#group(controller, id, '')
    return new MeterV1({ cpuacct: at('cpuacct'), cpu: at('cpu'), memory: at('memory'), pids: at('pids') }, reader)
  }

  denied(id: string, name: 'guest' | 'user'): Strain {
    const killed = keyed(readKernel(this.#group('memory', id, `${name}/memory.oom_control`)), 'oom_kill')
    const refused = keyed(readKernel(this.#group('pids', id, `${name}/pids.events`)), 'max')
    return { oomKills: killed ?? null, pidsRefused: refused ?? null }
  }

  #limit(id: string, name: 'guest' | 'user', limits: GroupLimits): void {
    for (const [file, value] of this.#limitWrites(id, name, limits)) writeKernel(file, value)
  }

  #limitWrites(id: string, name: 'guest' | 'user', limits: GroupLimits): readonly GroupWrite[] {
    const to = (controller: Controller, file: string, value: number): GroupWrite => [
      join(this.#group(controller, id, name), file),
      String(value),
    ]
    return [
      ...this.#memoryWrites(to('memory', 'memory.limit_in_bytes', limits.memoryBytes), limits.memoryBytes),
      to('pids', 'pids.max', limits.pids),
      to('cpu', 'cpu.cfs_period_us', CPU_PERIOD_US),
      to('cpu', 'cpu.cfs_quota_us', Math.round(limits.cpus * CPU_PERIOD_US)),
    ]
  }

  /** Memory and swap together, so that none of it is swapped away and used again; their limit is never the lower one. */
  #memoryWrites(memory: GroupWrite, bytes: number): readonly GroupWrite[] {
    if (!this.limits.includes('swap')) return [memory]
    const [file, value] = memory
    const both: GroupWrite = [file.replace('memory.limit_', 'memory.memsw.limit_'), value]
    return bytes > Number(readKernel(file)) ? [both, memory] : [memory, both]
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
