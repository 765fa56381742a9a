import { BOUNDS } from '@airlock/contract'
import { join } from 'node:path'
import type { GroupUsage, Strain } from '../../../backend.ts'
import { CounterFile, keyedIn, numberIn, pressureIn, type CounterReader } from './counter-file.ts'
import { closeAll, type GroupMeter, type GroupReading, heldMemory } from './meter.ts'

type Files =
  | 'time'
  | 'throttled'
  | 'memory'
  | 'memoryLimit'
  | 'memoryUses'
  | 'swap'
  | 'oom'
  | 'pids'
  | 'pidsLimit'
  | 'refused'
  | 'cpuPressure'
  | 'memoryPressure'
  | 'ioPressure'

/** Counters of version 2. Commands have groups without controllers: what they do is counted where their limits are. */
export class MeterV2 implements GroupMeter {
  readonly #files: Readonly<Record<Files, CounterFile>>
  readonly #group: string
  readonly #reader: CounterReader
  /** How long each child group ran. */
  readonly #times = new Map<string, CounterFile>()

  constructor(group: string, reader: CounterReader) {
    this.#group = group
    this.#reader = reader
    const file = (name: string) => new CounterFile(join(group, name), reader)
    this.#files = {
      time: file('cpu.stat'),
      throttled: file('user/cpu.stat'),
      memory: file('user/memory.current'),
      memoryLimit: file('user/memory.max'),
      memoryUses: file('user/memory.stat'),
      swap: file('user/memory.swap.current'),
      // Of the groups below it as well.
      oom: file('memory.events'),
      pids: file('user/pids.current'),
      pidsLimit: file('user/pids.max'),
      refused: file('user/pids.events'),
      cpuPressure: file('cpu.pressure'),
      memoryPressure: file('memory.pressure'),
      ioPressure: file('io.pressure'),
    }
  }

  read(): GroupReading | undefined {
    const { time, throttled, memory, memoryLimit, memoryUses, swap, pids, pidsLimit } = this.#files
    const microseconds = keyedIn(time.text(), 'usage_usec')
    if (microseconds === null) return undefined
    this.#forgetEnded()
    const throttledUs = keyedIn(throttled.text(), 'throttled_usec')
    const memoryBytes = numberIn(memory.text())
    const memoryLimitBytes = numberIn(memoryLimit.text())
    return {
      cpuMs: Math.floor(microseconds / 1000),
      throttledMs: throttledUs === null ? null : Math.floor(throttledUs / 1000),
      memoryBytes,
      memoryHeldBytes: heldMemory({ bytes: memoryBytes, limit: memoryLimitBytes }, () =>
        keyedIn(memoryUses.text(), 'inactive_file'),
      ),
      swapBytes: numberIn(swap.text()),
      pids: numberIn(pids.text()),
      memoryLimitBytes,
      pidsLimit: numberIn(pidsLimit.text()),
      pressure: this.#pressure(),
      ...this.strain(),
    }
  }

  strain(): Strain {
    return {
      oomKills: keyedIn(this.#files.oom.text(), 'oom_kill'),
      pidsRefused: keyedIn(this.#files.refused.text(), 'max'),
    }
  }

  /** Child groups have no counters of their own. */
  quickStrain(): Strain {
    return this.strain()
  }

  /** The kernel counts the time of every group; memory only where a controller is passed on, which it is not to children. */
  usage(child: string): GroupUsage | undefined {
    // The group of a session that is started anew has the same name.
    const microseconds = this.#timeOf(child) ?? this.#timeOf(child)
    return microseconds === null ? undefined : { cpuMs: microseconds / 1000, memoryPeakBytes: null, isWhole: false }
  }

  close(): void {
    closeAll(this.#files)
    this.#closeTimes()
  }

  /** Children that are gone and nobody asks for any more. */
  #forgetEnded(): void {
    for (const [child, file] of this.#times) if (file.text() === undefined) this.#times.delete(child)
  }

  #timeOf(child: string): number | null {
    const file = this.#times.get(child) ?? CounterFile.open(join(this.#group, 'user', child, 'cpu.stat'), this.#reader)
    if (!file) return null
    if (this.#times.size >= BOUNDS.sessions && !this.#times.has(child)) this.#closeTimes()
    this.#times.set(child, file)
    const microseconds = keyedIn(file.text(), 'usage_usec')
    if (microseconds !== null) return microseconds
    file.close()
    this.#times.delete(child)
    return null
  }

  #closeTimes(): void {
    for (const file of this.#times.values()) file.close()
    this.#times.clear()
  }

  #pressure(): GroupReading['pressure'] {
    const { cpuPressure, memoryPressure, ioPressure } = this.#files
    const cpu = pressureIn(cpuPressure.text())
    if (cpu === null) return null
    return { cpu, memory: pressureIn(memoryPressure.text()), io: pressureIn(ioPressure.text()) }
  }
}
