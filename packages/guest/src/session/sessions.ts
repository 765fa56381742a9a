import { mkdirSync } from 'node:fs'
import type {
  AgentBoot,
  GuestBoot,
  GuestCommandState,
  GuestResults,
  GuestSessionSpec,
  GuestStepSpec,
} from '@airlock/contract/guest'
import type { AwakeClock } from '../awake-clock.ts'
import { GuestFailure } from '../failure.ts'
import type { Outbox } from '../outbox.ts'
import { resolvePath } from '../path.ts'
import { throwOnUnstartable } from '../process/executable.ts'
import { FifoPool } from '../process/fifo-pool.ts'
import type { Launcher } from '../process/launch.ts'
import type { Kernel, KernelPlaces, Kernels } from './driver.ts'
import { Session } from './session.ts'
import { Step } from './step.ts'

export const SESSION_LIMIT = 16

/** All that the host has not told us to forget; the same answer names commands too, and is bounded. */
const REMEMBERED_LIMIT = 640

/** Code and stdin of steps that are not over. */
const HELD_BYTES = 64 * 1024 * 1024

interface SessionsOptions {
  readonly boot: GuestBoot | AgentBoot
  readonly outbox: Outbox
  readonly launcher: Launcher
  readonly clock: AwakeClock
  readonly kernels: Kernels
}

interface Known {
  readonly session: Session
  readonly opened: Promise<void>
}

/** Every session, and every step that the host has not told us to forget. */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #fifos: FifoPool
  readonly #sessions = new Map<string, Known>()
  readonly #steps = new Map<number, Step>()

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#fifos = new FifoPool(options.boot.steps, options.launcher.programs.mkfifo)
  }

  has(channel: number): boolean {
    return this.#steps.has(channel)
  }

  states(): readonly GuestCommandState[] {
    return [...this.#steps.values()].map((step) => step.state)
  }

  attached(received: ReadonlyMap<number, number>): void {
    for (const [channel, step] of this.#steps) step.attached(received.get(channel) ?? 0)
  }

  acknowledge(channel: number, offset: number): void {
    this.#steps.get(channel)?.acknowledge(offset)
  }

  /** An id that is known is answered as it is, once it is open. */
  async open(spec: GuestSessionSpec): Promise<GuestResults['session.open']> {
    const known = this.#sessions.get(spec.id) ?? this.#add(spec)
    await known.opened
    return known.session.info
  }

  list(): GuestResults['session.list'] {
    return { sessions: [...this.#sessions.values()].map(({ session }) => session.info) }
  }

  async interrupt(id: string): Promise<GuestResults['session.interrupt']> {
    const session = await this.#get(id)
    session.interrupt()
    return {}
  }

  async restart(id: string): Promise<GuestResults['session.restart']> {
    const session = await this.#get(id)
    await session.restart()
    return session.info
  }

  /** One that is not there is as good as closed. */
  async close(id: string): Promise<GuestResults['session.close']> {
    const known = this.#sessions.get(id)
    if (!known) return {}
    // One that could not be opened has nothing to close.
    await known.opened.catch(() => undefined)
    await known.session.close()
    this.#sessions.delete(id)
    return {}
  }

  /** An id that is known is answered again and never run twice. */
  async step(spec: GuestStepSpec): Promise<GuestResults['step']> {
    const session = await this.#get(spec.session)
    const steps = [...this.#steps.values()]
    const known = steps.find((step) => step.spec.id === spec.id)
    if (known) return { startedMs: known.startedMs }
    if (this.#steps.has(spec.channel)) throw new GuestFailure('invalid_request', 'the channel is in use')
    this.#throwWhenFull(steps, spec)
    const step = new Step(spec, this.#options.outbox)
    session.add(step)
    this.#steps.set(spec.channel, step)
    return { startedMs: step.startedMs }
  }

  /** Of a step: SIGKILL ends its interpreter, anything else is an interrupt. */
  async signal(channel: number, name: string): Promise<GuestResults['signal']> {
    const step = this.#steps.get(channel)
    if (!step || step.isOver) throw new GuestFailure('command_ended', 'the step has ended')
    const session = await this.#get(step.spec.session)
    await session.stop(step, name === 'SIGKILL' ? 'kill' : 'interrupt')
    return {}
  }

  /** One that is not over is remembered: nobody could end it otherwise. */
  forget(channel: number): GuestResults['forget'] {
    if (this.#steps.get(channel)?.isOver === false) throw new GuestFailure('invalid_request', 'the step is not over')
    this.#steps.delete(channel)
    return {}
  }

  async #get(id: string): Promise<Session> {
    const known = this.#sessions.get(id)
    if (!known) throw new GuestFailure('session_not_found', 'there is no such session')
    await known.opened
    return known.session
  }

  #add(spec: GuestSessionSpec): Known {
    if (this.#sessions.size >= SESSION_LIMIT)
      throw new GuestFailure('too_many_sessions', `at most ${SESSION_LIMIT} sessions are open at once`)
    const kernel = this.#options.kernels[spec.runtime]
    if (!kernel) throw new GuestFailure('runtime_unavailable', `there is no ${spec.runtime} here`)
    const { boot, launcher, clock } = this.#options
    const places = placesOf(boot)
    const cwd = resolvePath(spec.cwd)
    throwOnMissing(kernel, { ...spec, cwd }, this.#options)
    mkdirSync(boot.steps, { recursive: true, mode: 0o711 })
    const parts = { launcher, clock, kernel, places, fifos: this.#fifos, stepsDir: boot.steps }
    const session = new Session({ ...spec, cwd }, parts)
    const known = { session, opened: session.open() }
    this.#sessions.set(spec.id, known)
    known.opened.catch(() => this.#sessions.delete(spec.id))
    return known
  }

  #throwWhenFull(steps: readonly Step[], spec: GuestStepSpec): void {
    const held = steps.filter((step) => !step.isOver).reduce((sum, step) => sum + sizeOf(step.spec), sizeOf(spec))
    if (steps.length >= REMEMBERED_LIMIT || held > HELD_BYTES)
      throw new GuestFailure('too_many_steps', 'too many steps are waiting')
  }
}

function placesOf({ kernels, programs }: SessionsOptions['boot']): KernelPlaces {
  return { kernels, node: programs?.node ?? [process.execPath] }
}

function sizeOf({ code, stdin }: GuestStepSpec): number {
  return code.length + stdin.length
}

function throwOnMissing(kernel: Kernel, spec: GuestSessionSpec, { boot, launcher }: SessionsOptions): void {
  const [program = ''] = kernel.argv(placesOf(boot))
  const path = spec.env['PATH'] ?? launcher.env['PATH']
  try {
    throwOnUnstartable(boot.user, { program, cwd: spec.cwd, path })
  } catch (error) {
    if (error instanceof GuestFailure && error.code === 'executable_not_found')
      throw new GuestFailure('runtime_unavailable', `there is no ${program} in the sandbox`)
    throw error
  }
}
