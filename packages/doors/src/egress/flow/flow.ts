import type { Readable, Writable } from 'node:stream'
import type { Bandwidth } from '../bandwidth.ts'

/** How much one connection may last and carry. */
export interface FlowBounds {
  readonly bytes: number
  readonly idleMs: number
  readonly totalMs: number
}

/** Why a connection was cut. It is evidence. */
export type CutReason =
  | 'idle'
  | 'time'
  | 'bytes'
  | 'policy'
  | 'revoked'
  | 'shut'
  | 'paused'
  | 'lost'
  | 'client gone'
  | 'host gone'

interface FlowOptions {
  /** Shared by all connections of the sandbox. */
  readonly bandwidth: Bandwidth
  readonly bounds: FlowBounds
}

/**
 * One connection from a sandbox to a host, from its first byte to its end: what it carried, and one way to end it. All that
 * belongs to it listens to `signal`.
 */
export class Flow {
  sent = 0
  received = 0
  /** Where it was connected to. */
  address: string | null = null
  readonly #options: FlowOptions
  readonly #ending = new AbortController()
  #isDone = false
  readonly #idle: NodeJS.Timeout
  readonly #total: NodeJS.Timeout

  constructor(options: FlowOptions) {
    const { idleMs, totalMs } = options.bounds
    this.#options = options
    this.#idle = setTimeout(() => this.cut('idle'), idleMs).unref()
    this.#total = setTimeout(() => this.cut('time'), totalMs).unref()
  }

  get signal(): AbortSignal {
    return this.#ending.signal
  }

  /** The first reason holds. */
  get cutReason(): CutReason | null {
    return this.#ending.signal.aborted ? (this.#ending.signal.reason as CutReason) : null
  }

  /** Nothing happens to a flow that is done. */
  cut(reason: CutReason): void {
    if (!this.#isDone) this.#ending.abort(reason)
  }

  /** It has ended by itself, or was cut. */
  done(): void {
    this.#isDone = true
    clearTimeout(this.#idle)
    clearTimeout(this.#total)
  }

  /** Counts bytes that were read, and answers for how many milliseconds nothing more should be read. */
  count(direction: 'sent' | 'received', bytes: number): number {
    this[direction] += bytes
    this.#idle.refresh()
    if (this.sent + this.received > this.#options.bounds.bytes) this.cut('bytes')
    return this.#options.bandwidth.spend(bytes)
  }

  /** The same by a total, such as the counter of a socket. */
  countTo(direction: 'sent' | 'received', total: number): number {
    return this.count(direction, Math.max(0, total - this[direction]))
  }
}

interface PumpOptions {
  readonly flow: Flow
  readonly direction: 'sent' | 'received'
  /** Bytes of this direction with the chunk, where more than the chunk counts. */
  readonly total?: (chunk: Buffer) => number
}

/** Passes bytes on as fast as the other side takes them and the bandwidth allows, then the end. */
export function pump(from: Readable, to: Writable, { flow, direction, total }: PumpOptions): void {
  let isWaiting = false
  let isFull = false
  const goOn = () => {
    if (!isWaiting && !isFull) from.resume()
  }
  to.on('drain', () => {
    isFull = false
    goOn()
  })
  from.on('data', (chunk: Buffer) => {
    const waitMs = total ? flow.countTo(direction, total(chunk)) : flow.count(direction, chunk.length)
    if (flow.signal.aborted) return
    isFull = !to.write(chunk)
    isWaiting = waitMs > 0
    if (!isFull && !isWaiting) return
    from.pause()
    if (isWaiting)
      setTimeout(() => {
        isWaiting = false
        goOn()
      }, waitMs).unref()
  })
  from.on('end', () => to.end())
  from.resume()
}
