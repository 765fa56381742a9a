import { AirlockError } from '@airlock/contract'
import { createHash } from 'node:crypto'
import { closeSync, createReadStream, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { partsOf, refuse } from './member-name.ts'
import type { TarEntry } from './tar-reader.ts'

/** A file of an archive, kept under a number. */
export interface Spooled {
  readonly path: string
  readonly bytes: number
  readonly sha256: string
}

const MAX_FILES = 4096

/** The files of an archive of archives, until all are here: the one that tells their order comes last. */
export class Spool {
  readonly #dir: string
  readonly #files = new Map<string, Spooled>()
  #bytesLeft: number

  constructor(dir: string, maxBytes: number) {
    this.#dir = dir
    this.#bytesLeft = maxBytes
    mkdirSync(dir, 0o700)
  }

  async add(entry: TarEntry): Promise<void> {
    const name = partsOf(entry.name).join('/')
    if (entry.type === 'directory') return
    if (this.#files.has(name)) throw refuse(entry.name, 'appears twice')
    if (this.#files.size >= MAX_FILES) throw new AirlockError('template_invalid', 'The archive has too many files.')
    this.#files.set(name, entry.type === 'file' ? await this.#write(entry) : this.#linked(entry, name))
  }

  find(name: string): Spooled | undefined {
    return this.#files.get(name)
  }

  read(file: Spooled): string {
    return readFileSync(file.path, 'utf8')
  }

  stream(file: Spooled): AsyncIterable<Buffer> {
    return createReadStream(file.path, { highWaterMark: 256 * 1024 })
  }

  remove(): void {
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async #write(entry: TarEntry & { readonly type: 'file' }): Promise<Spooled> {
    this.#bytesLeft -= entry.size
    if (this.#bytesLeft < 0) throw new AirlockError('template_invalid', 'The archive is too large.')
    const path = join(this.#dir, String(this.#files.size))
    const hash = createHash('sha256')
    const file = openSync(path, 'wx', 0o600)
    try {
      for await (const chunk of entry.body) {
        hash.update(chunk)
        for (let at = 0; at < chunk.length;) at += writeSync(file, chunk, at)
      }
    } finally {
      closeSync(file)
    }
    return { path, bytes: entry.size, sha256: hash.digest('hex') }
  }

  /** Some versions of Docker write a layer that is there already as a link to it. */
  #linked(entry: TarEntry, name: string): Spooled {
    const base = entry.type === 'symlink' ? name.split('/').slice(0, -1) : []
    const parts: string[] = [...base]
    for (const part of entry.target.split('/')) {
      if (part === '..') parts.pop()
      else if (part !== '.' && part !== '') parts.push(part)
    }
    const found = this.#files.get(parts.join('/'))
    if (!found) throw refuse(entry.name, 'is a link that leads nowhere')
    return found
  }
}
