import { closeSync, openSync, readSync } from 'node:fs'
import { isSystemError } from '../system-error.ts'

/** What is counted fits; of longer files the beginning is read. */
const BUFFER_BYTES = 4096

/** What files that are read by turns have in common: what is read is taken out of the buffer before the next one is read. */
export class CounterReader {
  readonly buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  /** How many descriptors are held. */
  held = 0
}

/**
 * A kernel file that is read again and again: it is opened when it is first read, and stays open, for the kernel makes its
 * content anew at each read.
 */
export class CounterFile {
  readonly #path: string
  readonly #reader: CounterReader
  #fd: number | undefined
  #isGone = false

  constructor(path: string, reader: CounterReader) {
    this.#path = path
    this.#reader = reader
  }

  /** Undefined where there is no such file. */
  static open(path: string, reader: CounterReader): CounterFile | undefined {
    const file = new CounterFile(path, reader)
    return file.text() === undefined ? undefined : file
  }

  /** Undefined, from then on, when what it counted for is gone or the kernel does not count it. */
  text(): string | undefined {
    if (this.#isGone) return undefined
    try {
      this.#fd ??= this.#open()
      const { buffer } = this.#reader
      return buffer.toString('latin1', 0, readSync(this.#fd, buffer, 0, BUFFER_BYTES, 0))
    } catch (error) {
      if (!isSystemError(error, 'ENODEV', 'ENOENT', 'EOPNOTSUPP')) throw error
      this.close()
      return undefined
    }
  }

  close(): void {
    this.#isGone = true
    if (this.#fd === undefined) return
    closeSync(this.#fd)
    this.#fd = undefined
    this.#reader.held -= 1
  }

  #open(): number {
    const fd = openSync(this.#path, 'r')
    this.#reader.held += 1
    return fd
  }
}

/** All of the file is one number; `max` and the like are none. */
export function numberIn(text: string | undefined): number | null {
  if (text === undefined) return null
  const value = Number(text)
  return Number.isNaN(value) ? null : value
}

/** The number after a key at the beginning of a line, as in `memory.events` and `cpu.stat`. */
export function keyedIn(text: string | undefined, key: string): number | null {
  if (text === undefined) return null
  const line = text.startsWith(`${key} `) ? 0 : text.indexOf(`\n${key} `) + 1
  if (line === 0 && !text.startsWith(`${key} `)) return null
  const from = line + key.length + 1
  const end = text.indexOf('\n', from)
  return numberIn(text.slice(from, end === -1 ? undefined : end))
}

/** In which share of the last ten seconds somebody waited, of a file of pressure (PSI). */
export function pressureIn(text: string | undefined): number | null {
  const [, share] = /^some avg10=([\d.]+)/u.exec(text ?? '') ?? []
  return numberIn(share)
}
