import { writeSync } from 'node:fs'
import { mkdir, open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { canonical } from '@airlock/audit'
import { AirlockError, type SignedHead } from '@airlock/contract'
import { isCode, type Segment, segmentAt, syncDir } from './segments.ts'

/** A segment as we need it. */
export interface SegmentFile {
  /** From byte `from` of them on, into the page cache: a call that waits is faster than the way to another thread. */
  write(bytes: Buffer, from: number, at: number): number
  datasync(): Promise<void>
  truncate(size: number): Promise<void>
  stat(): Promise<{ readonly size: number }>
  close(): Promise<void>
}

export type OpenFile = (path: string, flags: 'r+' | 'w') => Promise<SegmentFile>

export const openSegment: OpenFile = async (path, flags) => {
  const handle = await open(path, flags, 0o600)
  return {
    write: (bytes, from, at) => writeSync(handle.fd, bytes, from, bytes.length - from, at),
    datasync: async () => handle.datasync(),
    truncate: async (size) => handle.truncate(size),
    stat: async () => handle.stat(),
    close: async () => handle.close(),
  }
}

/**
 * The end of a chain on disk: the segment that is written to, and how much of it is acknowledged. A write that fails
 * leaves nothing: the file is cut back to its last acknowledged byte.
 */
export class ChainFile {
  readonly #dir: string
  readonly #openFile: OpenFile
  #segment: Segment | undefined
  #size: number
  /** Bytes beyond these, written and not acknowledged. */
  #unsynced = 0
  #handle: SegmentFile | undefined
  #isSuspect = false

  constructor(
    dir: string,
    options: { readonly segment?: Segment | undefined; readonly size?: number; readonly openFile?: OpenFile } = {},
  ) {
    this.#dir = dir
    this.#segment = options.segment
    this.#size = options.size ?? 0
    this.#openFile = options.openFile ?? openSegment
  }

  /** The current segment and how many of its bytes are acknowledged. */
  get end(): { readonly segment: Segment; readonly size: number } | undefined {
    return this.#segment && { segment: this.#segment, size: this.#size }
  }

  /** What is on disk is not known after an I/O error: `restore`, then verify, before the next append. */
  get isSuspect(): boolean {
    return this.#isSuspect
  }

  /** Writes after what is written already. From then on no death of this process can undo it; that of the host can. */
  async write(bytes: Buffer): Promise<void> {
    const handle = await this.#current()
    try {
      writeAll(handle, bytes, this.#size + this.#unsynced)
    } catch (cause) {
      await this.#undo(handle, cause)
      throw unavailable(cause)
    }
    this.#unsynced += bytes.length
  }

  /** All that was written is durable when it resolves. When it fails, or a write does, all of that is gone. */
  async sync(): Promise<void> {
    const handle = await this.#current()
    try {
      await handle.datasync()
    } catch (cause) {
      await this.#undo(handle, cause)
      throw unavailable(cause)
    }
    this.#size += this.#unsynced
    this.#unsynced = 0
  }

  /** Goes on in a new segment that begins with this head. */
  async rotate(firstSeq: number, head: SignedHead): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 }).catch(throwUnavailable)
    const segment = segmentAt(this.#dir, firstSeq)
    const header = Buffer.from(`${canonical(head)}\n`)
    // Nothing in a file of this name can have been acknowledged, so one left by a failure is overwritten.
    const handle = await this.#openFile(segment.path, 'w').catch(throwUnavailable)
    try {
      writeAll(handle, header, 0)
      await handle.datasync()
      await syncDir(this.#dir)
      await syncDir(join(this.#dir, '..'))
    } catch (cause) {
      await handle.close()
      // An empty or torn segment that stays is dropped by recovery.
      await unlink(segment.path).catch(() => undefined)
      throw unavailable(cause)
    }
    await this.close()
    this.#segment = segment
    this.#size = header.length
    this.#handle = handle
  }

  /** Cuts the file back to what was acknowledged. */
  async restore(): Promise<void> {
    await this.close()
    this.#unsynced = 0
    if (!this.#segment) return
    const handle = await this.#openFile(this.#segment.path, 'r+').catch(throwUnavailable)
    try {
      await handle.truncate(this.#size)
      await handle.datasync()
    } catch (cause) {
      throw unavailable(cause)
    } finally {
      await handle.close()
    }
    this.#isSuspect = false
  }

  /** Replaces `head.json`: the latest signed head, beside the chain that it vouches for. */
  async writeHead(head: SignedHead): Promise<void> {
    const path = join(this.#dir, 'head.json')
    const handle = await open(`${path}.new`, 'w', 0o600)
    try {
      await handle.writeFile(`${canonical(head)}\n`)
      await handle.datasync()
    } finally {
      await handle.close()
    }
    await rename(`${path}.new`, path)
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }

  async #current(): Promise<SegmentFile> {
    if (this.#handle) return this.#handle
    if (!this.#segment) throw new AirlockError('internal', 'The chain has no segment yet.')
    const handle = await this.#openFile(this.#segment.path, 'r+').catch(throwUnavailable)
    const { size } = await handle.stat()
    if (size !== this.#size) {
      await handle.close()
      throw new AirlockError('evidence_broken', 'A file of evidence was changed by someone else.')
    }
    this.#handle = handle
    return handle
  }

  async #undo(handle: SegmentFile, cause: unknown): Promise<void> {
    this.#unsynced = 0
    try {
      await handle.truncate(this.#size)
      this.#isSuspect = isCode(cause, 'EIO')
    } catch {
      // Tried again by `restore`, before anything else is written.
      this.#isSuspect = true
    }
    // A close that fails has nothing to say that the failed write did not.
    if (this.#isSuspect) await this.close().catch(() => undefined)
  }
}

function writeAll(handle: SegmentFile, bytes: Buffer, at: number): void {
  for (let done = 0; done < bytes.length;) done += handle.write(bytes, done, at + done)
}

function throwUnavailable(cause: unknown): never {
  throw unavailable(cause)
}

function unavailable(cause: unknown): AirlockError {
  return new AirlockError('evidence_unavailable', undefined, { cause })
}
