import type { Duplex } from 'node:stream'
import { AirlockError } from '@airlock/contract'
import { encodeMessage, type Frame, FrameDecoder } from '@airlock/contract/guest'
import { BrokenConnection } from '../kept-connection.ts'

/** Frames that nobody has taken yet; beyond this the other side waits. */
const READ_AHEAD = 16

/** Frames over one connection, read as fast as they are taken. */
export class FrameSocket {
  readonly #socket: Duplex
  readonly #decoder = new FrameDecoder()
  readonly #frames: Frame[] = []
  #wake: (() => void) | undefined
  #onBroken: (() => void) | undefined
  #fault: unknown

  constructor(socket: Duplex) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('end', () => socket.destroy())
    socket.on('error', (error) => (this.#fault ??= error))
    socket.on('close', () => {
      this.#fault ??= new Error('the connection was closed')
      this.#wake?.()
      this.#onBroken?.()
    })
  }

  send(message: unknown): void {
    if (this.#socket.writable) this.#socket.write(encodeMessage(message))
  }

  /** Throws `BrokenConnection` when no more will come. */
  async next(): Promise<Frame> {
    for (;;) {
      const frame = this.#frames.shift()
      if (frame) {
        if (this.#frames.length === 0 && this.#socket.isPaused()) this.#socket.resume()
        return frame
      }
      if (this.#fault !== undefined) throw new BrokenConnection(this.#fault)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Only while nobody asks on it. */
  onceBroken(onBroken: () => void): void {
    this.#onBroken = onBroken
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    try {
      this.#frames.push(...this.#decoder.push(chunk))
    } catch (cause) {
      this.#fault = new AirlockError('internal', 'The peer sent something that is no frame.', { cause })
      this.#socket.destroy()
    }
    if (this.#frames.length > READ_AHEAD) this.#socket.pause()
    this.#wake?.()
  }
}
