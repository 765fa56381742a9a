import type { ChildProcess } from 'node:child_process'
import { Socket } from 'node:net'
import {
  CHUNK_BYTES,
  type GuestCommandEnd,
  type GuestCommandSpec,
  type GuestCommandState,
  type GuestErrorCode,
  STREAM,
} from '@airlock/contract/guest'
import { GuestFailure } from '../failure.ts'
import type { DataFrame, Outbox } from '../outbox.ts'
import { type CommandGroups, signalProcess } from './groups.ts'
import { OutputWindow } from './output-window.ts'
import { StdinPipe } from './stdin-pipe.ts'

/** How long after the exit output is awaited from whoever else holds it. */
const LINGER_MS = 250

/** Node fires a longer timer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export interface StartedProcess {
  readonly spec: GuestCommandSpec
  readonly child: ChildProcess
  readonly pid: number
  /** Our ends of its FIFOs. */
  readonly stdin: number | undefined
  readonly stdout: number
  readonly stderr: number
}

/** One running or ended command. It knows nothing of connections: whatever the host missed it says again. */
export class Command {
  readonly spec: GuestCommandSpec
  readonly startedMs = Date.now()
  readonly #pid: number
  readonly #outbox: Outbox
  readonly #groups: CommandGroups
  readonly #began = process.hrtime.bigint()
  readonly #window = new OutputWindow()
  readonly #outputs: readonly Socket[]
  readonly #stdin: StdinPipe | undefined
  readonly #timeout: NodeJS.Timeout
  #openOutputs = 2
  #paused = false
  #truncated = false
  #timedOut = false
  #end: GuestCommandEnd | undefined
  #closed = false
  #linger: NodeJS.Timeout | undefined

  constructor(started: StartedProcess, outbox: Outbox, groups: CommandGroups) {
    this.spec = started.spec
    this.#pid = started.pid
    this.#outbox = outbox
    this.#groups = groups
    this.#stdin = started.stdin === undefined ? undefined : this.#openStdin(started.stdin)
    this.#outputs = [this.#listen(started.stdout, STREAM.stdout), this.#listen(started.stderr, STREAM.stderr)]
    this.#timeout = setTimeout(() => this.#onTimeout(), Math.min(started.spec.timeoutMs, LONGEST_TIMER_MS))
    started.child.on('exit', (exitCode, signal) => this.#onExit(exitCode, signal))
  }

  get isRunning(): boolean {
    return this.#end === undefined
  }

  get state(): GuestCommandState {
    return {
      id: this.spec.id,
      channel: this.spec.channel,
      produced: this.#window.produced,
      truncated: this.#truncated,
      end: this.#end ?? null,
      closed: this.#closed,
    }
  }

  /** Says everything again that a host may not know which has `received` bytes. */
  attached(received: number): void {
    this.acknowledge(received)
    for (const segment of this.#window.segments) this.#outbox.sendData({ channel: this.spec.channel, ...segment })
    if (this.#stdin) this.#outbox.send({ type: 'ack', channel: this.spec.channel, offset: this.#stdin.received })
    if (this.#end) this.#sayExited(this.#end)
    if (this.#closed) this.#sayClosed()
  }

  acknowledge(offset: number): void {
    this.#window.acknowledge(offset)
    if (!this.#paused || this.#window.isFull) return
    this.#paused = false
    for (const output of this.#outputs) output.resume()
    this.#awaitRest()
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

  #listen(fd: number, stream: number): Socket {
    const socket = new Socket({ fd, readable: true, writable: false })
    socket.on('data', (bytes) => this.#onOutput(stream, bytes))
    socket.on('error', () => {
      // `close` follows.
    })
    socket.on('close', () => {
      this.#openOutputs--
      this.#closeWhenDone()
    })
    return socket
  }

  /** After the close it goes on reading, so that a process left behind does not die of SIGPIPE. */
  #onOutput(stream: number, bytes: Buffer): void {
    if (this.#closed) return
    const kept = bytes.subarray(0, this.spec.maxOutputBytes - this.#window.produced)
    if (kept.length < bytes.length) this.#truncated = true
    for (let at = 0; at < kept.length; at += CHUNK_BYTES) {
      const segment = this.#window.push(stream, kept.subarray(at, at + CHUNK_BYTES))
      this.#outbox.sendData({ channel: this.spec.channel, ...segment })
    }
    if (!this.#window.isFull || this.#paused) return
    this.#paused = true
    for (const output of this.#outputs) output.pause()
  }

  #onTimeout(): void {
    this.#timedOut = true
    // A group that will not die is the host's to end: it enforces every deadline again.
    void this.#groups.kill(this.spec.id, this.#pid).catch(() => undefined)
  }

  #onExit(exitCode: number | null, signal: string | null): void {
    clearTimeout(this.#timeout)
    const durationMs = Number(process.hrtime.bigint() - this.#began) / 1e6
    this.#end = { exitCode, signal, timedOut: this.#timedOut, durationMs }
    this.#stdin?.destroy()
    this.#groups.release(this.spec.id)
    this.#sayExited(this.#end)
    this.#awaitRest()
    this.#closeWhenDone()
  }

  /** Starts the wait anew whenever reading starts anew: output that waits for the host is not given up. */
  #awaitRest(): void {
    if (!this.#end || this.#closed) return
    clearTimeout(this.#linger)
    this.#linger = setTimeout(() => !this.#paused && this.#close(), LINGER_MS)
  }

  #closeWhenDone(): void {
    if (this.#end && this.#openOutputs === 0) this.#close()
  }

  #close(): void {
    clearTimeout(this.#linger)
    if (this.#closed) return
    this.#closed = true
    this.#sayClosed()
  }

  #sayExited(end: GuestCommandEnd): void {
    this.#outbox.send({ type: 'exited', channel: this.spec.channel, end })
  }

  #sayClosed(): void {
    const { channel, produced, truncated } = this.state
    this.#outbox.send({ type: 'closed', channel, produced, truncated })
  }

  #sayBroken(code: GuestErrorCode, message: string): void {
    this.#outbox.send({ type: 'broken', channel: this.spec.channel, error: { code, message } })
  }
}
