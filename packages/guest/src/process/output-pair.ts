import { closeSync, constants, openSync, readSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import type { OutputStream } from '@airlock/contract/guest'
import { errnoOf } from '../failure.ts'

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants
const READ_BYTES = 64 * 1024

/** As much as user code can make a pipe hold. What comes beyond is of somebody who goes on writing after the end. */
const PIPE_BYTES = 1024 * 1024

export interface OutputSink {
  readonly isPaused: boolean
  text(stream: OutputStream, bytes: Buffer): void
}

/** The two FIFOs of a step, which its interpreter opens by name. They serve one step after another. */
export class OutputPair {
  readonly stdout: string
  readonly stderr: string
  readonly #readers: readonly [FifoReader, FifoReader]

  constructor(stdout: string, stderr: string) {
    this.stdout = stdout
    this.stderr = stderr
    // For reading in one go what is there; both use it in turn.
    const scratch = Buffer.allocUnsafeSlow(READ_BYTES)
    this.#readers = [new FifoReader(stdout, scratch), new FifoReader(stderr, scratch)]
  }

  open(sink: OutputSink): void {
    const [stdout, stderr] = this.#readers
    stdout.open((bytes) => sink.text('stdout', bytes))
    stderr.open((bytes) => sink.text('stderr', bytes))
  }

  /** Reads on from here as it comes. Whoever writes need not wait for this. */
  listen(): void {
    for (const reader of this.#readers) reader.listen()
  }

  pause(): void {
    for (const reader of this.#readers) reader.pause()
  }

  resume(): void {
    for (const reader of this.#readers) reader.resume()
  }

  /** Hands on all that was written until now. False when the sink is full before: once it has room, ask again. */
  drain(sink: OutputSink): boolean {
    return this.#readers.every((reader) => reader.drain(sink))
  }

  /**
   * The step is over: whatever else comes is dropped. True when nobody can write any more, so that the pair may serve
   * again at once; otherwise `onFree` says when.
   */
  release(onFree: () => void): boolean {
    const held = this.#readers.filter((reader) => !reader.release())
    let left = held.length
    for (const reader of held)
      reader.onceClosed(() => {
        left--
        if (left === 0) onFree()
      })
    return held.length === 0
  }

  /** Whoever still writes is told that nobody reads. */
  destroy(): void {
    for (const reader of this.#readers) reader.destroy()
    for (const path of [this.stdout, this.stderr]) unlinkSync(path)
  }
}

/**
 * Our end of one FIFO. It is read when a step is over; only who runs longer is listened to as he writes. It stays open from step
 * to step: whoever opens the other one in between would wait, and go on in the middle of the next.
 */
class FifoReader {
  readonly #path: string
  readonly #scratch: Buffer
  #fd: number | undefined
  /** Of one who is listened to: then `#fd` is its own. */
  #socket: Socket | undefined
  /** Ours, so that the end comes when the step is over and not whenever nobody has it open. */
  #writer: number | undefined
  #onData: (bytes: Buffer) => void = drop
  /** Nobody has it open for writing, as far as was read. */
  #isAtEnd = false

  constructor(path: string, scratch: Buffer) {
    this.#path = path
    this.#scratch = scratch
  }

  open(onData: (bytes: Buffer) => void): void {
    this.#fd ??= this.#openFifo()
    // What somebody wrote between two steps belongs to neither.
    this.#read(drop)
    this.#onData = onData
  }

  listen(): void {
    if (this.#socket || this.#fd === undefined) return
    this.#writer = openSync(this.#path, O_WRONLY)
    this.#follow(this.#fd)
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  drain(sink: OutputSink): boolean {
    // It was read before the pause, and comes by itself.
    if (this.#socket && this.#socket.readableLength > 0) return false
    return this.#read(this.#onData, () => sink.isPaused)
  }

  /** True when there is no other writer. */
  release(): boolean {
    this.#onData = drop
    this.#closeWriter()
    if (!this.#isAtEnd || this.#socket) this.#read(drop)
    if (this.#isAtEnd) this.#letGo()
    else if (this.#fd !== undefined && !this.#socket) this.#follow(this.#fd)
    else this.resume()
    return this.#isAtEnd
  }

  onceClosed(onClosed: () => void): void {
    this.#socket?.once('close', onClosed)
  }

  destroy(): void {
    this.#closeWriter()
    if (this.#socket) this.#socket.destroy()
    else if (this.#fd !== undefined) closeSync(this.#fd)
    this.#socket = undefined
    this.#fd = undefined
  }

  #follow(fd: number): void {
    const socket = new Socket({ fd, readable: true, writable: false })
    this.#socket = socket
    socket.on('data', (bytes) => this.#onData(bytes))
    socket.on('error', () => {
      // `close` follows.
    })
    socket.on('close', () => {
      if (this.#socket === socket) this.#letGo()
    })
  }

  /** Reads what is there; false when somebody has no room for all of it. More than a pipe holds is of who never stops. */
  #read(onData: (bytes: Buffer) => void, isFull = () => false): boolean {
    this.#isAtEnd = false
    for (let taken = 0; taken < PIPE_BYTES;) {
      if (isFull()) return false
      const count = this.#fd === undefined ? 0 : readNow(this.#fd, this.#scratch)
      this.#isAtEnd = count === 0
      if (!count) return true
      onData(Buffer.from(this.#scratch.subarray(0, count)))
      taken += count
    }
    return true
  }

  /** A socket takes its descriptor along. */
  #letGo(): void {
    if (!this.#socket) return
    this.#fd = this.#openFifo()
    this.#socket.destroy()
    this.#socket = undefined
  }

  #openFifo(): number {
    return openSync(this.#path, O_RDONLY | O_NONBLOCK)
  }

  #closeWriter(): void {
    if (this.#writer !== undefined) closeSync(this.#writer)
    this.#writer = undefined
  }
}

function drop(): void {}

/** 0 at the end, undefined when there is nothing yet. */
function readNow(fd: number, buffer: Buffer): number | undefined {
  try {
    return readSync(fd, buffer)
  } catch (error) {
    if (errnoOf(error) === 'EAGAIN') return undefined
    throw error
  }
}
