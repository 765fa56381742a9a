import { closeSync, readSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import type { OutputStream } from '@airlock/contract/guest'
import { errnoOf } from '../failure.ts'
import { openNamedFifo } from './fifo-pool.ts'

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
  /** For reading in one go what is there; both readers use it in turn. */
  readonly #scratch = Buffer.allocUnsafeSlow(READ_BYTES)
  #readers: readonly FifoReader[] = []

  constructor(stdout: string, stderr: string) {
    this.stdout = stdout
    this.stderr = stderr
  }

  open(sink: OutputSink): void {
    const stdout = new FifoReader(this.stdout, this.#scratch, (bytes) => sink.text('stdout', bytes))
    try {
      const stderr = new FifoReader(this.stderr, this.#scratch, (bytes) => sink.text('stderr', bytes))
      this.#readers = [stdout, stderr]
    } catch (error) {
      stdout.destroy()
      throw error
    }
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

class FifoReader {
  readonly #fd: number
  readonly #scratch: Buffer
  #socket: Socket | undefined
  #onData: (bytes: Buffer) => void
  /** Ours, so that the end comes when the step is over and not before somebody has opened it. */
  #writer: number | undefined
  #isOver = false

  constructor(path: string, scratch: Buffer, onData: (bytes: Buffer) => void) {
    const { ours, theirs } = openNamedFifo(path)
    this.#fd = ours
    this.#writer = theirs
    this.#scratch = scratch
    this.#onData = onData
  }

  listen(): void {
    if (this.#socket || this.#isOver) return
    this.#socket = new Socket({ fd: this.#fd, readable: true, writable: false })
    this.#socket.on('data', (bytes) => this.#onData(bytes))
    this.#socket.on('error', () => {
      // `close` follows.
    })
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
    const buffer = this.#scratch
    for (let taken = 0; taken < PIPE_BYTES;) {
      if (sink.isPaused) return false
      const count = readNow(this.#fd, buffer)
      if (!count) return true
      this.#onData(Buffer.from(buffer.subarray(0, count)))
      taken += count
    }
    return true
  }

  /** True when there is no other writer; it is closed in that case. */
  release(): boolean {
    this.#onData = () => {}
    this.#closeWriter()
    const buffer = this.#scratch
    for (let taken = 0; taken < PIPE_BYTES;) {
      const count = readNow(this.#fd, buffer)
      if (count === undefined) break
      if (count === 0) {
        this.#close()
        return true
      }
      taken += count
    }
    this.listen()
    this.resume()
    return false
  }

  onceClosed(onClosed: () => void): void {
    this.#socket?.once('close', onClosed)
  }

  destroy(): void {
    this.#closeWriter()
    this.#close()
  }

  #close(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#socket) this.#socket.destroy()
    else closeSync(this.#fd)
  }

  #closeWriter(): void {
    if (this.#writer !== undefined) closeSync(this.#writer)
    this.#writer = undefined
  }
}

/** 0 at the end, undefined when there is nothing yet. */
function readNow(fd: number, buffer: Buffer): number | undefined {
  try {
    return readSync(fd, buffer)
  } catch (error) {
    if (errnoOf(error) === 'EAGAIN') return undefined
    throw error
  }
}
