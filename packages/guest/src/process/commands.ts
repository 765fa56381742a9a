import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import type { GuestBoot, GuestCommandSpec, GuestCommandState, GuestResults, HostMessage } from '@airlock/contract/guest'
import type { AwakeClock } from '../awake-clock.ts'
import { GuestFailure } from '../failure.ts'
import { resolvePath } from '../path.ts'
import type { DataFrame, Outbox } from '../outbox.ts'
import { Command, type StartedProcess } from './command.ts'
import { throwOnUnstartable } from './executable.ts'
import { FifoPool, openFifo } from './fifo-pool.ts'
import type { Launcher } from './launch.ts'
import { makeStdinPipe, type PipeEnds } from './stdin-source.ts'

const RUNNING_LIMIT = 64
/** The first message names them beside the steps of sessions, and is bounded. */
const REMEMBERED_LIMIT = 384

interface CommandsOptions {
  readonly boot: GuestBoot
  readonly outbox: Outbox
  readonly launcher: Launcher
  readonly clock: AwakeClock
  readonly fifoDir: string
}

/** What a command is connected to, until it has it. */
interface Plumbing {
  readonly fifos: readonly string[]
  readonly stdin: PipeEnds | undefined
}

/** The ends of its pipes: stdout, stderr and, where asked for, its event output. */
interface Ends {
  readonly outputs: readonly PipeEnds[]
  readonly stdin: PipeEnds | undefined
}

/** Every command that the host has not told us to forget. */
export class Commands {
  readonly #user: GuestBoot['user']
  readonly #outbox: Outbox
  readonly #launcher: Launcher
  readonly #fifos: FifoPool
  readonly #clock: AwakeClock
  readonly #byChannel = new Map<number, Command>()

  constructor(options: CommandsOptions) {
    this.#user = options.boot.user
    this.#outbox = options.outbox
    this.#launcher = options.launcher
    this.#clock = options.clock
    this.#fifos = new FifoPool(options.fifoDir, options.launcher.programs.mkfifo)
  }

  /** So that the first command does not wait; a failure is told to the first that needs one. */
  prepare(): void {
    void this.#fifos.refill().catch(() => undefined)
  }

  has(channel: number): boolean {
    return this.#byChannel.has(channel)
  }

  states(): readonly GuestCommandState[] {
    return [...this.#byChannel.values()].map((command) => command.state)
  }

  attached(received: ReadonlyMap<number, number>): void {
    for (const [channel, command] of this.#byChannel) command.attached(received.get(channel) ?? 0)
  }

  /** An id that is known is answered again: the host may not have heard. */
  async run(spec: GuestCommandSpec): Promise<GuestResults['run']> {
    const known = this.#find(spec)
    if (known) return { startedMs: known.startedMs }
    const cwd = resolvePath(spec.cwd)
    const env = { ...this.#launcher.env, ...spec.env }
    throwOnUnstartable(this.#user, { program: spec.argv[0] ?? '', cwd, path: env['PATH'] })
    const plumbing = await this.#connect(spec)
    let isUsed = false
    try {
      const startedMeanwhile = this.#find(spec)
      isUsed = startedMeanwhile === undefined
      return { startedMs: (startedMeanwhile ?? this.#start({ ...spec, cwd, env }, plumbing)).startedMs }
    } finally {
      if (!isUsed) this.#giveBack(plumbing)
    }
  }

  async signal(channel: number, name: string): Promise<GuestResults['signal']> {
    if (!isSignal(name)) throw new GuestFailure('invalid_request', 'there is no such signal')
    await this.#get(channel).signal(name)
    return {}
  }

  /** One that still runs is remembered: nobody could end it otherwise. */
  forget(channel: number): GuestResults['forget'] {
    const command = this.#byChannel.get(channel)
    if (command?.isRunning) throw new GuestFailure('invalid_request', 'the command still runs')
    this.#byChannel.delete(channel)
    return {}
  }

  input(frame: DataFrame): void {
    this.#get(frame.channel).input(frame)
  }

  notice(message: Exclude<HostMessage, { type: 'attach' | 'request' | 'slept' }>): void {
    const command = this.#get(message.channel)
    if (message.type === 'ack') command.acknowledge(message.offset)
    else if (message.type === 'eof') command.endInput()
  }

  #get(channel: number): Command {
    const command = this.#byChannel.get(channel)
    if (!command) throw new GuestFailure('command_not_found', 'there is no such command')
    return command
  }

  /** The command of that id, or undefined when it may be started. */
  #find(spec: GuestCommandSpec): Command | undefined {
    const commands = [...this.#byChannel.values()]
    const known = commands.find((command) => command.spec.id === spec.id)
    if (known) return known
    if (this.#byChannel.has(spec.channel)) throw new GuestFailure('invalid_request', 'the channel is in use')
    const running = commands.filter((command) => command.isRunning).length
    if (running >= RUNNING_LIMIT || commands.length >= REMEMBERED_LIMIT)
      throw new GuestFailure('too_many_commands', `at most ${RUNNING_LIMIT} commands run at once`)
    return undefined
  }

  async #connect(spec: GuestCommandSpec): Promise<Plumbing> {
    const stdin = spec.stdin === 'open' ? await makeStdinPipe(this.#launcher.programs.sh) : undefined
    try {
      return { stdin, fifos: await this.#fifos.take(spec.eventOutput ? 3 : 2) }
    } catch (error) {
      closeEnds(stdin)
      throw error
    }
  }

  #giveBack(plumbing: Plumbing): void {
    this.#fifos.giveBack(plumbing.fifos)
    closeEnds(plumbing.stdin)
  }

  #start(spec: GuestCommandSpec, { fifos, stdin }: Plumbing): Command {
    const { groups } = this.#launcher
    const outputs: PipeEnds[] = []
    const opened = () => (stdin ? [...outputs, stdin] : outputs)
    try {
      groups.make(spec.id)
      for (const path of fifos) outputs.push(openFifo(path))
      const started = this.#spawn(spec, { outputs, stdin })
      const command = new Command({ ...started, clock: this.#clock }, this.#outbox, groups)
      this.#byChannel.set(spec.channel, command)
      return command
    } catch (error) {
      for (const { ours } of opened()) closeSync(ours)
      groups.release(spec.id)
      throw error
    } finally {
      for (const { theirs } of opened()) closeSync(theirs)
    }
  }

  #spawn(spec: GuestCommandSpec, { outputs, stdin }: Ends): StartedProcess {
    const [stdout, stderr, events] = outputs
    if (!stdout || !stderr) throw new GuestFailure('internal', 'a command needs two outputs')
    const own = events ? [events.theirs] : []
    const stdio = [stdin?.theirs ?? 'ignore', stdout.theirs, stderr.theirs, ...own] as const
    const { id: group, argv, cwd, env, limits } = spec
    const child = this.#launcher.launch({ group, argv, cwd, env, stdio, limits })
    const pid = child.pid
    if (pid === undefined) throw new GuestFailure('internal', 'no process could be started')
    return { spec, child, pid, stdin: stdin?.ours, stdout: stdout.ours, stderr: stderr.ours, events: events?.ours }
  }
}

function closeEnds(ends: PipeEnds | undefined): void {
  if (!ends) return
  closeSync(ends.ours)
  closeSync(ends.theirs)
}

function isSignal(name: string): name is NodeJS.Signals {
  return Object.hasOwn(constants.signals, name)
}
