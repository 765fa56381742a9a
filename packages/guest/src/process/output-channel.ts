import {
  CHUNK_BYTES,
  type GuestCommandEnd,
  type GuestCommandState,
  type OutputStream,
  STREAM,
} from '@airlock/contract/guest'
import type { Outbox } from '../outbox.ts'
import { OutputWindow } from './output-window.ts'

export interface OutputSpec {
  readonly id: string
  readonly channel: number
  /** Of stdout and stderr together. */
  readonly maxOutputBytes: number
}

/** Whatever produces the output. */
export interface OutputSource {
  pause(): void
  resume(): void
}

/**
 * All that a command or a step says to the host, and how it ended. It knows nothing of connections: whatever the host
 * missed it says again.
 */
export class OutputChannel {
  readonly #spec: OutputSpec
  readonly #outbox: Outbox
  readonly #source: OutputSource
  readonly #window = new OutputWindow()
  #textBytes = 0
  #paused = false
  #truncated = false
  #end: GuestCommandEnd | undefined
  #closed = false

  constructor(spec: OutputSpec, outbox: Outbox, source: OutputSource) {
    this.#spec = spec
    this.#outbox = outbox
    this.#source = source
  }

  get isPaused(): boolean {
    return this.#paused
  }

  get isEnded(): boolean {
    return this.#end !== undefined
  }

  get isClosed(): boolean {
    return this.#closed
  }

  get state(): GuestCommandState {
    return {
      id: this.#spec.id,
      channel: this.#spec.channel,
      produced: this.#window.produced,
      truncated: this.#truncated,
      end: this.#end ?? null,
      closed: this.#closed,
    }
  }

  /** What is beyond the cap is dropped, and so is everything after the close. */
  text(stream: OutputStream, bytes: Buffer): void {
    if (this.#closed) return
    const kept = bytes.subarray(0, this.#spec.maxOutputBytes - this.#textBytes)
    if (kept.length < bytes.length) this.#truncated = true
    this.#textBytes += kept.length
    this.#push(STREAM[stream], kept)
  }

  /** Whoever calls it bounds it. */
  rich(bytes: Buffer): void {
    if (!this.#closed) this.#push(STREAM.rich, bytes)
  }

  end(end: GuestCommandEnd): void {
    this.#end = end
    this.#sayExited(end)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#sayClosed()
  }

  /** Says everything again that a host may not know which has `received` bytes. */
  attached(received: number): void {
    this.acknowledge(received)
    for (const segment of this.#window.segments) this.#outbox.sendData({ channel: this.#spec.channel, ...segment })
    if (this.#end) this.#sayExited(this.#end)
    if (this.#closed) this.#sayClosed()
  }

  acknowledge(offset: number): void {
    this.#window.acknowledge(offset)
    if (!this.#paused || this.#window.isFull) return
    this.#paused = false
    this.#source.resume()
  }

  #push(stream: number, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      const segment = this.#window.push(stream, bytes.subarray(at, at + CHUNK_BYTES))
      this.#outbox.sendData({ channel: this.#spec.channel, ...segment })
    }
    if (!this.#window.isFull || this.#paused) return
    this.#paused = true
    this.#source.pause()
  }

  #sayExited(end: GuestCommandEnd): void {
    this.#outbox.send({ type: 'exited', channel: this.#spec.channel, end })
  }

  #sayClosed(): void {
    const { channel, produced, truncated } = this.state
    this.#outbox.send({ type: 'closed', channel, produced, truncated })
  }
}
