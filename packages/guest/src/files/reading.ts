import { close, read } from 'node:fs'
import { promisify } from 'node:util'
import { CHUNK_BYTES, WINDOW_BYTES } from '@airlock/contract/guest'
import { toGuestError } from '../failure.ts'
import type { Opened } from './open.ts'
import type { Transfer, TransferEvents } from './transfer.ts'

const readAsync = promisify(read)

/** Sends a file as it was long when it was opened, at most a window ahead of the host. */
export class FileReading implements Transfer {
  readonly #fd: number
  readonly #size: number
  readonly #content: Buffer | undefined
  readonly #events: TransferEvents
  #sent = 0
  #acknowledged = 0
  #isCancelled = false
  #wake: (() => void) | undefined

  constructor({ fd, size, content }: Opened, events: TransferEvents) {
    this.#fd = fd
    this.#size = size
    this.#content = content
    this.#events = events
    void this.#run()
  }

  acknowledge(offset: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, offset)
    this.#wake?.()
  }

  data(): void {
    // The host sends nothing on this channel; if it does, there is no place for it.
  }

  end(): void {
    this.cancel()
  }

  cancel(): void {
    this.#isCancelled = true
    this.#events.cancelled()
    this.#wake?.()
  }

  async #run(): Promise<void> {
    try {
      // The answer to the request goes first.
      await new Promise((resolve) => setImmediate(resolve))
      while (!this.#isCancelled && this.#sent < this.#size && (await this.#sendNext()));
      if (!this.#isCancelled) this.#events.done('eof', this.#sent)
    } catch (error) {
      const { code, message } = toGuestError(error)
      if (!this.#isCancelled) this.#events.broken(code, message)
    } finally {
      // Nothing was written, so nothing can be lost by a failing close.
      close(this.#fd, () => undefined)
    }
  }

  /** False at the end of a file that became shorter. */
  async #sendNext(): Promise<boolean> {
    while (this.#sent - this.#acknowledged + CHUNK_BYTES > WINDOW_BYTES) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
      if (this.#isCancelled) return false
    }
    const length = Math.min(CHUNK_BYTES, this.#size - this.#sent)
    const bytes = await this.#read(length)
    if (this.#isCancelled || bytes.length === 0) return false
    this.#events.data(this.#sent, bytes)
    this.#sent += bytes.length
    return true
  }

  async #read(length: number): Promise<Buffer> {
    if (this.#content) return this.#content.subarray(this.#sent, this.#sent + length)
    const { bytesRead, buffer } = await readAsync(this.#fd, Buffer.allocUnsafe(length), 0, length, this.#sent)
    return buffer.subarray(0, bytesRead)
  }
}
