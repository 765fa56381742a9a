import { AirlockError, isolationProbe, type IsolationProbe } from '@airlock/contract'
import { INSIDE } from '@airlock/contract/guest'
import { deadline, type Log } from '@airlock/std'
import { existsSync, readFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { IsolationBackend, SandboxSpec } from '../backend.ts'
import { runThrowAway, type Ran } from '../throw-away.ts'
import { FORBIDDEN_CALLS } from './forbidden-calls.ts'
import { readProbeOutput } from './probe-program.ts'

export type Probe = IsolationProbe

export const PROBE_COMMAND = [INSIDE.probe] as const

const LIMIT_MS = 30_000
/** Walls of which the result is remembered: an image more is probed again. */
const MAX_REMEMBERED = 256

/** What a filter answers: EPERM, or ENOSYS for what programs must see as absent. */
const REFUSALS: ReadonlySet<number> = new Set([-1, -38])

const remembered = z.strictObject({ bootId: z.string(), probes: z.record(z.string(), isolationProbe) })

interface ProbesOptions {
  readonly backend: IsolationBackend
  readonly stateDir: string
  readonly runtimeDir: string
  readonly bootId: string
  readonly log: Log
}

/**
 * Whether forbidden system calls really fail for user code. That cannot be read from outside: the kernel tells that a process
 * has a filter, not which. So the calls are tried, as user code in a sandbox that nobody asked for, once for each wall: a
 * runtime, a list, an image and a boot of the host. What came of it is kept over restarts.
 */
export class Probes {
  readonly #options: ProbesOptions
  readonly #known: Map<string, Probe>
  readonly #running = new Map<string, Promise<Probe>>()
  readonly #closed = new AbortController()

  constructor(options: ProbesOptions) {
    this.#options = options
    this.#known = readKnown(this.#file, options.bootId)
  }

  /** A probe that cannot be run throws, and is tried again by the next who asks. Whoever stops waiting leaves it running. */
  async of(tier: SandboxSpec['tier'], image: string, signal: AbortSignal): Promise<Probe> {
    const wall = this.#options.backend.wallOf(tier, image)
    const known = this.#known.get(wall)
    if (known) return known
    const running = this.#running.get(wall) ?? this.#begin({ wall, tier, image })
    const { promise: given, reject } = Promise.withResolvers<never>()
    const giveUp = () => reject(signal.reason)
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      signal.throwIfAborted()
      return await Promise.race([running, given])
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  /** For the first sandbox not to wait: a failure is told to it. */
  prepare(tier: SandboxSpec['tier'], image: string): void {
    this.of(tier, image, this.#closed.signal).catch((error: unknown) =>
      this.#options.log.warn('forbidden system calls could not be tried', { tier, image, error }),
    )
  }

  /** Ends what is under way, and resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.#closed.abort(new AirlockError('sandbox_ended', 'The data plane ends.'))
    await Promise.allSettled(this.#running.values())
  }

  #begin(asked: Asked): Promise<Probe> {
    const running = this.#run(asked).finally(() => this.#running.delete(asked.wall))
    this.#running.set(asked.wall, running)
    // Everybody who waited may have gone.
    running.catch(() => undefined)
    return running
  }

  async #run({ wall, tier, image }: Asked): Promise<Probe> {
    const { backend, runtimeDir, log } = this.#options
    const signal = deadline(LIMIT_MS, this.#closed.signal)
    const commands = [PROBE_COMMAND]
    const { ran } = await runThrowAway(backend, { tier, image, dir: join(runtimeDir, 'probes'), commands, signal })
    const probe = readProbe(ran[0], tier)
    if (probe.passed.length > 0) log.error('forbidden system calls get through', { tier, image, ...probe })
    await this.#remember(wall, probe)
    return probe
  }

  async #remember(wall: string, probe: Probe): Promise<void> {
    const [oldest] = this.#known.keys()
    if (this.#known.size >= MAX_REMEMBERED && oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(wall, probe)
    const { bootId, log } = this.#options
    const text = JSON.stringify({ bootId, probes: Object.fromEntries(this.#known) })
    try {
      await writeFile(`${this.#file}.new`, text, { mode: 0o600 })
      await rename(`${this.#file}.new`, this.#file)
    } catch (error) {
      // It is known as long as we live, and is found again after that.
      log.warn('what forbidden system calls do is not remembered', { error })
      await rm(`${this.#file}.new`, { force: true })
    }
  }

  get #file(): string {
    return join(this.#options.stateDir, 'probes.json')
  }
}

interface Asked extends Pick<SandboxSpec, 'tier' | 'image'> {
  readonly wall: string
}

/** Fails closed: a probe that did not run to its end is an error, not a result. */
export function readProbe(ran: Ran | undefined, tier: SandboxSpec['tier']): Probe {
  if (ran?.exitCode !== 0)
    throw new AirlockError('isolation_unavailable', 'The probe of forbidden system calls did not run.', {
      cause: ran?.output.toString('latin1').slice(0, 500),
    })
  const left = new Set(FORBIDDEN_CALLS.filter(({ isLeftToGvisor }) => isLeftToGvisor).map(({ name }) => name))
  const counted = readProbeOutput(ran.output).filter(({ name }) => tier === 'standard' || !left.has(name))
  const passed = counted.filter(({ result }) => !REFUSALS.has(result)).map(({ name }) => name)
  return { tried: counted.length, passed }
}

/** What cannot be read, or is of another boot, is tried again. */
function readKnown(file: string, bootId: string): Map<string, Probe> {
  if (!existsSync(file)) return new Map()
  try {
    const read = remembered.parse(JSON.parse(readFileSync(file, 'utf8')))
    return new Map(read.bootId === bootId ? Object.entries(read.probes) : [])
  } catch {
    return new Map()
  }
}
