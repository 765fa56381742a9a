import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'

const MAX_BYTES = 10 * 1024 * 1024

/** The operational log: `path` and one older file beside it, each at most `maxBytes`. */
export class LogFile {
  readonly #path: string
  readonly #maxBytes: number
  #fd: number
  #bytes: number

  constructor(path: string, maxBytes: number = MAX_BYTES) {
    this.#path = path
    this.#maxBytes = maxBytes
    this.#fd = openSync(path, 'a', 0o600)
    this.#bytes = fstatSync(this.#fd).size
  }

  write(line: string): void {
    const bytes = Buffer.from(`${line}\n`)
    try {
      if (this.#bytes + bytes.length > this.#maxBytes) this.#rotate()
      this.#bytes += writeSync(this.#fd, bytes)
    } catch {
      // A full disk must not end the server: the log is not evidence.
    }
  }

  close(): void {
    closeSync(this.#fd)
  }

  #rotate(): void {
    renameSync(this.#path, `${this.#path}.1`)
    const fd = openSync(this.#path, 'a', 0o600)
    closeSync(this.#fd)
    this.#fd = fd
    this.#bytes = 0
  }
}
