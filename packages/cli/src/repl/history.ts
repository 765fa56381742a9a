import type { Runtime } from '@airlock/sdk'
import { appendFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

const KEPT = 1000
const SPARE = 1000

/** The lines that were typed at one kind of prompt, kept for the next time. Nobody else may read them. */
export class History {
  readonly #path: string

  constructor(runtime: Runtime, directory = join(homedir(), '.airlock')) {
    this.#path = join(directory, `history-${runtime}`)
  }

  /** Newest first. */
  load(): string[] {
    const lines = this.#read()
    if (lines.length > KEPT + SPARE) this.#shorten(lines.slice(-KEPT))
    return lines.slice(-KEPT).toReversed()
  }

  add(line: string): void {
    if (line.trim() === '') return
    try {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 })
      appendFileSync(this.#path, `${line}\n`, { mode: 0o600 })
    } catch {
      // A home that cannot be written to has no history: nothing to bother anybody with at every line.
    }
  }

  #read(): readonly string[] {
    try {
      return readFileSync(this.#path, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    } catch {
      // Nothing was typed yet.
      return []
    }
  }

  #shorten(lines: readonly string[]): void {
    try {
      writeFileSync(`${this.#path}.new`, `${lines.join('\n')}\n`, { mode: 0o600 })
      renameSync(`${this.#path}.new`, this.#path)
    } catch {
      // It stays long until it can be written.
    }
  }
}
