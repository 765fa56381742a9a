import { close, fsync, write } from 'node:fs'
import { promisify } from 'node:util'
import { CHUNK_BYTES, WINDOW_BYTES } from '@airlock/contract/guest'
import { errnoOf, GuestFailure, toGuestError } from '../failure.ts'
import type { Transfer, TransferEvents } from './transfer.ts'

const closeAsync = promisify(close)
const syncAsync = promisify(fsync)
const writeAsync = promisify(write)

/** Writes what the host sends, in order; acknowledges what is written, and says `written` once it is on the disk of the sandbox. */
export class FileWriting implements Transfer {
  readonly #fd: number
  readonly #events: TransferEvents
  #received = 0
  #written = 0
  #isOver = false
  #tail: Promise<void> = Promise.resolve()

  constructor(fd: number, events: TransferEvents) {
    this.#fd = fd
    this.#events = events
  }

  acknowledge(): void {
    // Nothing of ours flows on this channel.
  }

  data(offset: number, bytes: Buffer): void {
    const isInOrder = offset === this.#received
    const waiting = this.#received - this.#written + bytes.length
    this.#received += bytes.length
    this.#then(async () => {
      if (!isInOrder || waiting > WINDOW_BYTES + CHUNK_BYTES)
        throw new GuestFailure('invalid_request', 'bytes out of order or beyond the window')
      await this.#write(bytes)
      if (!this.#isOver) this.#events.acknowledge(this.#written)
    })
  }

  end(): void {
    this.#then(async () => {
      await this.#sync()
      await closeAsync(this.#fd)
      this.#isOver = true
      this.#events.done('written', this.#written)
    })
  }

  cancel(): void {
    this.#then(() => this.#give(() => this.#events.cancelled()))
  }

  /** One after another; the first failure ends it and what comes after is dropped. */
  #then(work: () => Promise<void>): void {
    this.#tail = this.#tail.then(async () => {
      if (this.#isOver) return
      try {
        await work()
      } catch (error) {
        const { code, message } = toGuestError(error)
        await this.#give(() => this.#events.broken(code, message))
      }
    })
  }

  async #give(tell: () => void): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    // The failure that brought us here is the one to tell.
    await closeAsync(this.#fd).catch(() => undefined)
    tell()
  }

  /** Until then it is only in memory, and the host may have no room for it. What is no file on a disk cannot be synced. */
  async #sync(): Promise<void> {
    try {
      await syncAsync(this.#fd)
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'EINVAL') return
      // The disk of the sandbox had room when it was written: it is the host that has none.
      if (errno === 'ENOSPC') throw new GuestFailure('disk_failed', 'the host could not write what was sent')
      throw error
    }
  }

  async #write(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await writeAsync(this.#fd, bytes, at, bytes.length - at, null)
      at += bytesWritten
    }
    this.#written += bytes.length
  }
}
