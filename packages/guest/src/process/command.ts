import type { ChildProcess } from 'node:child_process'
import { Socket } from 'node:net'
import {
  EVENT_OUTPUT_BYTES,
  type GuestCommandSpec,
  type GuestCommandState,
  type GuestErrorCode,
} from '@airlock/contract/guest'
import type { AwakeClock } from '../awake-clock.ts'
import { GuestFailure } from '../failure.ts'
import type { DataFrame, Outbox } from '../outbox.ts'
import { type LaunchGroups, signalProcess } from './groups.ts'
import { OutputChannel } from './output-channel.ts'
import { StdinPipe } from './stdin-pipe.ts'

/** How long after the exit output is awaited from whoever else holds it. */
const LINGER_MS = 250

export interface StartedProcess {
  readonly spec: GuestCommandSpec
  readonly child: ChildProcess
  readonly pid: number
  /** Our ends of its FIFOs. */
  readonly stdin: number | undefined
  readonly stdout: number
  readonly stderr: number
  /** Undefined without an event output. */
  readonly events: number | undefined
}

/** One running or ended command. */
export class Command {
  readonly spec: GuestCommandSpec
  readonly startedMs = Date.now()
  readonly #pid: number
  readonly #outbox: Outbox
  readonly #groups: LaunchGroups
  readonly #began = process.hrtime.bigint()
  readonly #output: OutputChannel
  readonly #outputs: readonly Socket[]
  readonly #stdin: StdinPipe | undefined
  readonly #cancelTimeout: () => void
  #openOutputs: number
  #eventRoom = EVENT_OUTPUT_BYTES
  #timedOut = false
  #linger: NodeJS.Timeout | undefined

  constructor(started: StartedProcess & { readonly clock: AwakeClock }, outbox: Outbox, groups: LaunchGroups) {
    this.spec = started.spec
    this.#pid = started.pid
    this.#outbox = outbox
    this.#groups = groups
    this.#output = new OutputChannel(started.spec, outbox, { pause: () => this.#pause(), resume: () => this.#resume() })
    this.#stdin = started.stdin === undefined ? undefined : this.#openStdin(started.stdin)
    this.#outputs = [
      this.#listen(started.stdout, (bytes) => this.#output.text('stdout', bytes)),
      this.#listen(started.stderr, (bytes) => this.#output.text('stderr', bytes)),
      ...(started.events === undefined ? [] : [this.#listen(started.events, (bytes) => this.#takeEvents(bytes))]),
    ]
    this.#openOutputs = this.#outputs.length
    this.#cancelTimeout = started.clock.after(started.spec.timeoutMs, () => this.#onTimeout())
    started.child.on('exit', (exitCode, signal) => this.#onExit(exitCode, signal))
  }

  get isRunning(): boolean {
    return !this.#output.isEnded
  }

  get state(): GuestCommandState {
    return this.#output.state
  }

  attached(received: number): void {
    if (this.#stdin) this.#outbox.send({ type: 'ack', channel: this.spec.channel, offset: this.#stdin.received })
    this.#output.attached(received)
  }

  acknowledge(offset: number): void {
    this.#output.acknowledge(offset)
  }

  input(frame: DataFrame): void {
    if (this.#stdin) this.#stdin.write(frame.offset, frame.bytes)
    else this.#sayBroken('stdin_closed', 'this command has no stdin')
  }

  endInput(): void {
    this.#stdin?.end()
  }

  /** SIGKILL ends the whole tree; any other signal goes to the command's process group. */
  async signal(name: NodeJS.Signals): Promise<void> {
    if (!this.isRunning) throw new GuestFailure('command_ended', 'the command has ended')
    if (name === 'SIGKILL') await this.#groups.kill(this.spec.id, this.#pid)
    else if (!signalProcess(-this.#pid, name)) throw new GuestFailure('command_ended', 'the command has ended')
  }

  #openStdin(fd: number): StdinPipe {
    return new StdinPipe(fd, {
      written: (offset) => this.#outbox.send({ type: 'ack', channel: this.spec.channel, offset }),
      broken: (code, message) => this.isRunning && this.#sayBroken(code, message),
    })
  }

  /** After the close it goes on reading, so that a process left behind does not die of SIGPIPE. */
  #listen(fd: number, take: (bytes: Buffer) => void): Socket {
    const socket = new Socket({ fd, readable: true, writable: false })
    socket.on('data', take)
    socket.on('error', () => {
      // `close` follows.
    })
    socket.on('close', () => {
      this.#openOutputs--
      this.#closeWhenDone()
    })
    return socket
  }

  /** Bytes beyond the cap are dropped: the reader of events sees that the cap is reached. */
  #takeEvents(bytes: Buffer): void {
    const kept = bytes.subarray(0, this.#eventRoom)
    this.#eventRoom -= kept.length
    if (kept.length > 0) this.#output.rich(kept)
  }

  #pause(): void {
    for (const output of this.#outputs) output.pause()
  }

  #resume(): void {
    for (const output of this.#outputs) output.resume()
    this.#awaitRest()
  }

  #onTimeout(): void {
    this.#timedOut = true
    // A group that will not die is the host's to end: it enforces every deadline again.
    void this.#groups.kill(this.spec.id, this.#pid).catch(() => undefined)
  }

  #onExit(exitCode: number | null, signal: string | null): void {
    this.#cancelTimeout()
    const durationMs = Number(process.hrtime.bigint() - this.#began) / 1e6
    this.#stdin?.destroy()
    const forksRefused = exitCode === 0 ? 0 : this.#groups.refusedForks(this.spec.id)
    this.#groups.release(this.spec.id)
    const refused = forksRefused === 0 ? {} : { forksRefused }
    this.#output.end({ exitCode, signal, timedOut: this.#timedOut, durationMs, ...refused })
    this.#awaitRest()
    this.#closeWhenDone()
  }

  /** Starts the wait anew whenever reading starts anew: output that waits for the host is not given up. */
  #awaitRest(): void {
    if (this.isRunning || this.#output.isClosed) return
    clearTimeout(this.#linger)
    this.#linger = setTimeout(() => !this.#output.isPaused && this.#close(), LINGER_MS)
  }

  #closeWhenDone(): void {
    if (!this.isRunning && this.#openOutputs === 0) this.#close()
  }

  #close(): void {
    clearTimeout(this.#linger)
    this.#output.close()
  }

  #sayBroken(code: GuestErrorCode, message: string): void {
    this.#outbox.send({ type: 'broken', channel: this.spec.channel, error: { code, message } })
  }
}
