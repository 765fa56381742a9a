import { CHUNK_BYTES, WINDOW_BYTES } from '@airlock/contract/guest'
import { TarError, TarReader } from '@airlock/std/tar'
import { GuestFailure, toGuestError } from '../failure.ts'
import type { Transfer, TransferEvents } from './transfer.ts'
import type { TreeWriter } from './tree-writer.ts'

/** Writes the archive that the host sends; acknowledges what is written, and says `written` once all of it is on the disk. */
export class ArchiveWriting implements Transfer {
  readonly #tree: TreeWriter
  readonly #events: TransferEvents
  readonly #reader = new TarReader()
  #received = 0
  #written = 0
  #isOver = false
  #tail: Promise<void> = Promise.resolve()

  constructor(tree: TreeWriter, events: TransferEvents) {
    this.#tree = tree
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
      this.#tree.take(this.#reader.push(bytes))
      await this.#tree.settle()
      this.#written += bytes.length
      if (!this.#isOver) this.#events.acknowledge(this.#written)
    })
  }

  end(): void {
    this.#then(async () => {
      this.#reader.finish()
      await this.#tree.finish()
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
        const { code, message } = describe(error)
        await this.#give(() => this.#events.broken(code, `${message} ${this.#tree.progress}`))
      }
    })
  }

  async #give(tell: () => void): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    await this.#tree.abandon()
    tell()
  }
}

function describe(error: unknown): ReturnType<typeof toGuestError> {
  if (error instanceof TarError) return { code: 'archive_invalid', message: error.message }
  const { code, message } = toGuestError(error)
  return { code, message: /[.!?]$/u.test(message) ? message : `${message}.` }
}
