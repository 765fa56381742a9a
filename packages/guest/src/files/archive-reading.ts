import { close, read } from 'node:fs'
import { promisify } from 'node:util'
import { CHUNK_BYTES, WINDOW_BYTES } from '@airlock/contract/guest'
import { archiveComment, archiveEnd, entryHeader, entryPadding } from '@airlock/std/tar'
import type { User } from '../as-user.ts'
import { GuestFailure, toGuestError } from '../failure.ts'
import type { Transfer, TransferEvents } from './transfer.ts'
import { type TreeItem, TreeReader } from './tree-reader.ts'

const closeAsync = promisify(close)
const readAsync = promisify(read)

/** Sends a directory as a tar, at most a window ahead of the host. Names that were left out are in a comment at its end. */
export class ArchiveReading implements Transfer {
  readonly #tree: TreeReader
  readonly #events: TransferEvents
  #pending: Buffer[] = []
  #pendingBytes = 0
  #sent = 0
  #acknowledged = 0
  #isCancelled = false
  #wake: (() => void) | undefined

  constructor(of: { readonly path: Buffer; readonly user: User }, events: TransferEvents) {
    this.#tree = new TreeReader(of.path, of.user)
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
      for (const item of this.#tree.items()) {
        await this.#send(item)
        if (this.#isCancelled) return
      }
      if (this.#tree.skipped.count > 0) await this.#put(archiveComment(JSON.stringify(this.#tree.skipped)))
      await this.#put(archiveEnd())
      await this.#flush()
      if (!this.#isCancelled) this.#events.done('eof', this.#sent)
    } catch (error) {
      const { code, message } = toGuestError(error)
      if (!this.#isCancelled) this.#events.broken(code, message)
    }
  }

  async #send(item: TreeItem): Promise<void> {
    const { entry } = item
    try {
      await this.#put(entryHeader(entry))
      if ('fd' in item) await this.#stream(item.fd, entry)
      else await this.#put(item.content)
      await this.#put(entryPadding(entry.size))
    } finally {
      // Nothing was written, so nothing can be lost by a failing close.
      if ('fd' in item) await closeAsync(item.fd).catch(() => undefined)
    }
  }

  /** Exactly as many bytes as were announced. */
  async #stream(fd: number, { path, size }: TreeItem['entry']): Promise<void> {
    for (let at = 0; at < size && !this.#isCancelled;) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - at))
      const { bytesRead } = await readAsync(fd, buffer, 0, buffer.length, at)
      if (bytesRead === 0)
        throw new GuestFailure('file_changed', `${path.slice(0, 300)} became shorter while it was read.`)
      at += bytesRead
      await this.#put(buffer.subarray(0, bytesRead))
    }
  }

  async #put(bytes: Buffer): Promise<void> {
    this.#pending.push(bytes)
    this.#pendingBytes += bytes.length
    if (this.#pendingBytes >= CHUNK_BYTES) await this.#flush()
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#pending)
    this.#pending = []
    this.#pendingBytes = 0
    for (let at = 0; at < bytes.length && !this.#isCancelled; at += CHUNK_BYTES) {
      const piece = bytes.subarray(at, at + CHUNK_BYTES)
      if (!(await this.#untilRoom())) return
      this.#events.data(this.#sent, piece)
      this.#sent += piece.length
    }
  }

  /** False when nobody wants it any more. */
  async #untilRoom(): Promise<boolean> {
    while (this.#sent - this.#acknowledged + CHUNK_BYTES > WINDOW_BYTES && !this.#isCancelled)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    return !this.#isCancelled
  }
}
