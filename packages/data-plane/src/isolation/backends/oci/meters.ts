import type { NodeSample } from '@airlock/contract'
import type { GroupUsage, Strain } from '../../backend.ts'
import { DiskMeter, share } from './disk-meter.ts'
import { CounterReader } from './groups/counter-file.ts'
import type { Groups } from './groups/groups.ts'
import type { GroupMeter, GroupReading } from './groups/meter.ts'
import type { SandboxPaths } from './paths.ts'
import { maxOpenFiles, readPidFile } from './processes.ts'

export interface MetersOptions {
  readonly groups: Groups
  readonly pathsOf: (id: string) => SandboxPaths
}

/** Of our open files that may be held; the rest is for work. Beyond it files are opened for each reading. */
const SHARE_OF_FILES = 0.75
/** Processes of a sandbox that are asked for its disk. The kernel of gVisor has it not, a process beside it has. */
const ASKED = 16

interface Meter {
  readonly groups: GroupMeter
  /** Opened by who first needs it: that takes longer. */
  disk: DiskMeter | undefined
}

/**
 * The meters of all sandboxes, opened when one is first asked for. Synchronous: a reading is a few dozen microseconds.
 * What is closed is opened again by the next reading: who destroys a sandbox sees to it that there is none.
 */
export class Meters {
  readonly #options: MetersOptions
  readonly #reader = new CounterReader()
  readonly #open = new Map<string, Meter>()
  readonly #mayHold = Math.floor(maxOpenFiles() * SHARE_OF_FILES)

  constructor(options: MetersOptions) {
    this.#options = options
  }

  /** Undefined when there is no such sandbox. */
  read(id: string): NodeSample | undefined {
    const sample = this.#use(id, (meter) => {
      const groups = meter.groups.read()
      return groups && toSample(id, groups, this.#diskOf(id, meter))
    })
    if (!sample) this.close(id)
    return sample
  }

  /** The few counters that tell why something failed. */
  strain(id: string, child: string | undefined): Strain {
    return this.#use(id, ({ groups }) => groups.quickStrain(child))
  }

  /** What one child group has used, if it can be told. */
  usage(id: string, child: string): GroupUsage | undefined {
    return this.#use(id, ({ groups }) => groups.usage(child))
  }

  /** Whether one of the places that user code writes to takes nothing more. */
  isDiskFull(id: string): boolean {
    return this.#use(id, (meter) => this.#diskOf(id, meter).isFull())
  }

  /** The disk is free to go, and so are the groups. */
  close(id: string): void {
    const meter = this.#open.get(id)
    if (!meter) return
    this.#open.delete(id)
    closeMeter(meter)
  }

  #use<T>(id: string, work: (meter: Meter) => T): T {
    const known = this.#open.get(id)
    if (known) return work(known)
    const before = this.#reader.held
    const opened = this.#openMeter(id)
    try {
      return work(opened)
    } finally {
      // What holds nothing is of a sandbox that is gone.
      if (this.#reader.held > before && before < this.#mayHold) this.#open.set(id, opened)
      else closeMeter(opened)
    }
  }

  #openMeter(id: string): Meter {
    return { groups: this.#options.groups.meter(id, this.#reader), disk: undefined }
  }

  #diskOf(id: string, meter: Meter): DiskMeter {
    const paths = this.#options.pathsOf(id)
    meter.disk ??= new DiskMeter(this.#pidsOf(id, paths), paths, this.#reader)
    return meter.disk
  }

  /** The first process has what the sandbox sees, as a rule. */
  *#pidsOf(id: string, paths: SandboxPaths): Generator<number> {
    const { groups } = this.#options
    const init = readPidFile(paths.pidFile)
    if (init !== undefined && groups.holdsGuest(id, init)) yield init
    yield* groups.pids(id).slice(0, ASKED)
  }
}

function closeMeter({ groups, disk }: Meter): void {
  groups.close()
  disk?.close()
}

function toSample(id: string, groups: GroupReading, places: DiskMeter): NodeSample {
  const { memoryHeldBytes, memoryLimitBytes, pidsLimit, ...counted } = groups
  const { diskPercent, inodesPercent, ...disk } = places.read()
  return {
    id,
    at: Date.now(),
    ...counted,
    ...disk,
    ofLimit: {
      memory: ofLimit(memoryHeldBytes, memoryLimitBytes),
      pids: ofLimit(groups.pids, pidsLimit),
      disk: diskPercent,
      inodes: inodesPercent,
    },
  }
}

function ofLimit(used: number | null, limit: number | null): number | null {
  return used === null || limit === null ? null : share(used, limit)
}
