import { closeSync, ftruncateSync, openSync, renameSync, writeFileSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { AirlockError } from '@airlock/contract'

/** A shorter one is not worth writing anew. */
const LONG_BYTES = 1024 * 1024

/**
 * A file of lines that is only appended to, and written anew with what still counts when it has grown long. It stays open, so
 * that a line costs one call of the kernel. A line survives the death of this process, not that of the host.
 */
export class Journal {
  readonly #path: string
  #file: number | undefined
  #size = 0
  #longAt = LONG_BYTES
  #isClosed = false

  constructor(path: string) {
    this.#path = path
  }

  /** Whether it should be written anew. */
  get isLong(): boolean {
    return this.#size > this.#longAt
  }

  /** The whole lines that an earlier process left. What was being written when it died is cut off; `onCut` hears how much. */
  async read(onCut: (bytes: number) => void): Promise<readonly string[]> {
    const bytes = await readFile(this.#path).catch(ifMissing)
    this.#size = bytes.lastIndexOf('\n') + 1
    if (this.#size < bytes.length) {
      onCut(bytes.length - this.#size)
      ftruncateSync(this.#open(), this.#size)
    }
    return bytes.toString('utf8', 0, this.#size).split('\n').filter(Boolean)
  }

  /** All of it or nothing. Precondition: `text` ends with a newline. */
  append(text: string): void {
    const bytes = Buffer.from(text)
    const file = this.#open()
    try {
      for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done)
    } catch (cause) {
      ftruncateSync(file, this.#size)
      throw cause
    }
    this.#size += bytes.length
  }

  /** A crash leaves the old one or the new one. */
  rewrite(text: string): void {
    const fresh = `${this.#path}.new`
    writeFileSync(fresh, text, { mode: 0o600 })
    renameSync(fresh, this.#path)
    this.#letGo()
    this.#size = Buffer.byteLength(text)
    this.#longAt = Math.max(LONG_BYTES, 2 * this.#size)
  }

  /** For good. */
  close(): void {
    this.#isClosed = true
    this.#letGo()
  }

  #open(): number {
    if (this.#isClosed) throw new AirlockError('sandbox_ended')
    this.#file ??= openSync(this.#path, 'a', 0o600)
    return this.#file
  }

  #letGo(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }
}

function ifMissing(error: unknown): Buffer {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0)
  throw error
}
