import type { GuestProcessLimits } from '@airlock/contract/guest'
import { Duplex } from 'node:stream'
import type { Launcher } from '../process/launch.ts'
import { signalProcess } from '../process/groups.ts'
import { GuestFailure } from '../failure.ts'
import type { DriverMessage } from './driver.ts'
import { BrokenFraming, LineSplitter, parseDriverLine } from './driver-lines.ts'

/** A machine may be slow, and a virtual one slower. */
const READY_MS = 15_000

/** How long the last words of a dead interpreter are awaited. */
const LAST_WORDS_MS = 200

const KILL_MS = 10_000

export interface InterpreterStart {
  readonly group: string
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly limits?: GuestProcessLimits | undefined
}

export interface InterpreterEvents {
  message(message: DriverMessage): void
  /** It has exited, everything it said has been heard, and its whole group is empty. */
  died(how: string, signal: string | null): void
}

/** One process of a driver, from its start to its death. */
export class Interpreter {
  readonly #launcher: Launcher
  readonly #group: string
  readonly #events: InterpreterEvents
  readonly #lines = new LineSplitter()
  readonly #channel: Duplex
  readonly #pid: number
  readonly #ready = Promise.withResolvers<string>()
  readonly #died = Promise.withResolvers<string>()
  #why: string | undefined
  #signal: string | null = null
  #killed: Promise<void> = Promise.resolve()

  constructor(launcher: Launcher, start: InterpreterStart, events: InterpreterEvents) {
    this.#launcher = launcher
    this.#group = start.group
    this.#events = events
    const child = launcher.launch({ ...start, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
    const channel = child.stdio[3]
    if (!(channel instanceof Duplex) || child.pid === undefined)
      throw new GuestFailure('internal', 'no interpreter could be started')
    this.#pid = child.pid
    this.#channel = channel
    const closed = new Promise<void>((resolve) => channel.once('close', resolve))
    channel.on('data', (bytes: Buffer) => this.#take(bytes))
    channel.on('error', () => {
      // `close` follows.
    })
    // Mostly it is about to exit, which says more.
    channel.on('end', () => setTimeout(() => this.#give('it closed its channel'), LAST_WORDS_MS))
    child.once('exit', (code, signal) => {
      this.#signal = signal
      this.#why ??= signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`
      void this.#bury(closed)
    })
    // Whoever waits for it hears it; nobody need wait.
    this.#ready.promise.catch(() => undefined)
    void this.#died.promise.then((how) => {
      this.#ready.reject(new GuestFailure('runtime_crashed', `the interpreter did not start: ${how}`))
      events.died(how, this.#signal)
    })
  }

  /** Resolves with its version. Throws when it ended before, or said nothing for too long. */
  async ready(): Promise<string> {
    const limit = setTimeout(() => this.#give('it did not become ready in time'), READY_MS)
    try {
      return await this.#ready.promise
    } finally {
      clearTimeout(limit)
    }
  }

  send(line: string): void {
    if (this.#channel.writable) this.#channel.write(`${line}\n`)
  }

  interrupt(): void {
    signalProcess(-this.#pid, 'SIGINT')
  }

  /** Resolves when nothing of it is left. */
  async kill(why: string): Promise<void> {
    this.#give(why)
    const late = Promise.withResolvers<never>()
    const limit = setTimeout(() => late.reject(new GuestFailure('internal', 'the interpreter does not die')), KILL_MS)
    try {
      await Promise.race([this.#died.promise, late.promise])
    } finally {
      clearTimeout(limit)
    }
  }

  #take(bytes: Buffer): void {
    try {
      for (const line of this.#lines.push(bytes)) this.#hear(parseDriverLine(line))
    } catch (error) {
      if (!(error instanceof BrokenFraming)) throw error
      this.#give(error.message)
    }
  }

  #hear(message: DriverMessage): void {
    if (message.type === 'ready') this.#ready.resolve(message.version)
    else this.#events.message(message)
  }

  /** Ends the whole group; the exit of the process does the rest. */
  #give(why: string): void {
    if (this.#why !== undefined) return
    this.#why = why
    this.#killGroup()
  }

  /** One after another: a late round of an earlier one must not meet the next interpreter. */
  #killGroup(): void {
    const kill = () => this.#launcher.groups.kill(this.#group, this.#pid)
    // What will not die is the host's to end.
    this.#killed = this.#killed.then(kill).catch(() => undefined)
  }

  async #bury(closed: Promise<void>): Promise<void> {
    this.#killGroup()
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, LAST_WORDS_MS))])
    this.#channel.destroy()
    await this.#killed
    await this.#launcher.groups.reset(this.#group).catch(() => false)
    this.#died.resolve(this.#why ?? 'it ended')
  }
}
