import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { canonical } from '@airlock/audit'
import { AirlockError, type SignedHead } from '@airlock/contract'
import { isCode, type Segment, segmentAt } from './segments.ts'

export type OpenFile = (path: string, flags: string | number) => Promise<FileHandle>

/** What is written to a segment is durable when the write returns: one way to the disk and back, not two. */
const GO_ON = constants.O_RDWR | constants.O_DSYNC
const BEGIN = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_DSYNC

/**
 * The end of a chain on disk: the segment that is written to, and how much of it is acknowledged. A write that fails
 * leaves nothing: the file is cut back to its last acknowledged byte.
 */
export class ChainFile {
  readonly #dir: string
  readonly #openFile: OpenFile
  #segment: Segment | undefined
  #size: number
  #handle: FileHandle | undefined
  #isSuspect = false

  constructor(
    dir: string,
    options: { readonly segment?: Segment | undefined; readonly size?: number; readonly openFile?: OpenFile } = {},
  ) {
    this.#dir = dir
    this.#segment = options.segment
    this.#size = options.size ?? 0
    this.#openFile = options.openFile ?? (async (path, flags) => open(path, flags, 0o600))
  }

  /** The current segment and how many of its bytes are acknowledged. */
  get end(): { readonly segment: Segment; readonly size: number } | undefined {
    return this.#segment && { segment: this.#segment, size: this.#size }
  }

  /** What is on disk is not known after an I/O error: `restore`, then verify, before the next append. */
  get isSuspect(): boolean {
    return this.#isSuspect
  }

  /** Durable when it resolves. */
  async append(bytes: Buffer): Promise<void> {
    const handle = await this.#current()
    try {
      await writeAll(handle, bytes, this.#size)
    } catch (cause) {
      await this.#undo(handle, cause)
      throw unavailable(cause)
    }
    this.#size += bytes.length
  }

  /** Goes on in a new segment that begins with this head. */
  async rotate(firstSeq: number, head: SignedHead): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 }).catch(throwUnavailable)
    const segment = segmentAt(this.#dir, firstSeq)
    const header = Buffer.from(`${canonical(head)}\n`)
    // Nothing in a file of this name can have been acknowledged, so one left by a failure is overwritten.
    const handle = await this.#openFile(segment.path, BEGIN).catch(throwUnavailable)
    try {
      await writeAll(handle, header, 0)
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
    const handle = await this.#openFile(`${path}.new`, 'w')
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

  async #current(): Promise<FileHandle> {
    if (this.#handle) return this.#handle
    if (!this.#segment) throw new AirlockError('internal', 'The chain has no segment yet.')
    const handle = await this.#openFile(this.#segment.path, GO_ON).catch(throwUnavailable)
    const { size } = await handle.stat()
    if (size !== this.#size) {
      await handle.close()
      throw new AirlockError('evidence_broken', 'A file of evidence was changed by someone else.')
    }
    this.#handle = handle
    return handle
  }

  async #undo(handle: FileHandle, cause: unknown): Promise<void> {
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

async function writeAll(handle: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, at + done)
    done += bytesWritten
  }
}

/** A new name is durable only when its directory is. */
async function syncDir(dir: string): Promise<void> {
  const handle = await open(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function throwUnavailable(cause: unknown): never {
  throw unavailable(cause)
}

function unavailable(cause: unknown): AirlockError {
  return new AirlockError('evidence_unavailable', undefined, { cause })
}
