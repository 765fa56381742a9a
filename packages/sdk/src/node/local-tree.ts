import { createReadStream, type Stats } from 'node:fs'
import { lstat, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import {
  archiveEnd,
  entryHeader,
  entryPadding,
  MAX_DEPTH,
  type TarEntry,
  TarManifest,
  whyNotInside,
  whyNotName,
} from '@airlock/std/tar'
import { AirlockError } from '../errors.ts'

/** What was left out of an archive, and why. */
export interface Skipped {
  readonly path: string
  readonly why: string
}

export interface PackOptions {
  /** Leaves out what it answers true for, by the path below the directory; nothing below a directory is asked about then. */
  readonly ignore?: ((path: string, kind: 'file' | 'directory' | 'symlink') => boolean) | undefined
  /** Called with what has passed so far. */
  readonly onProgress?: ((passed: { readonly files: number; readonly bytes: number }) => void) | undefined
}

/** Shorter files are read whole before they are announced: then their size is right. */
const WHOLE_BYTES = 256 * 1024
const CHUNK_BYTES = 64 * 1024

/** A local directory as a tar, in the order of its names. */
export class LocalTree {
  readonly skipped: Skipped[] = []
  readonly #directory: string
  readonly #options: PackOptions
  readonly #manifest = new TarManifest()

  constructor(directory: string, options: PackOptions) {
    this.#directory = directory
    this.#options = options
  }

  /** The digest of what has passed. */
  get manifest(): string {
    return this.#manifest.summary.manifest
  }

  /** Small pieces are joined: each chunk is a turn of the connection. */
  async *bytes(): AsyncGenerator<Uint8Array> {
    let held: Uint8Array[] = []
    let size = 0
    for await (const piece of this.#pieces()) {
      held.push(piece)
      size += piece.length
      if (size < CHUNK_BYTES) continue
      yield Buffer.concat(held)
      held = []
      size = 0
    }
    yield Buffer.concat(held)
  }

  async *#pieces(): AsyncGenerator<Uint8Array> {
    yield* this.#inside('', 0)
    yield archiveEnd()
  }

  async *#inside(directory: string, depth: number): AsyncGenerator<Uint8Array> {
    for (const name of (await readdir(join(this.#directory, directory))).toSorted()) {
      const path = directory === '' ? name : `${directory}/${name}`
      const why = whyNotName(name) ?? (depth >= MAX_DEPTH ? 'is too deep' : undefined)
      if (why === undefined) yield* this.#item(path, depth)
      else this.skipped.push({ path, why })
    }
  }

  async *#item(path: string, depth: number): AsyncGenerator<Uint8Array> {
    const found = await lstat(join(this.#directory, path))
    const kind = kindOf(found)
    if (kind === undefined) this.skipped.push({ path, why: 'is no file, directory or link' })
    else if (this.#options.ignore?.(path, kind) === true) return
    else if (kind === 'file') yield* this.#file(entryOf(path, kind, found))
    else if (kind === 'symlink') yield* this.#link(entryOf(path, kind, found))
    else {
      yield this.#begin(entryOf(path, kind, found))
      yield* this.#inside(path, depth + 1)
    }
  }

  async *#link(entry: TarEntry): AsyncGenerator<Uint8Array> {
    const target = await readlink(join(this.#directory, entry.path))
    const why = whyNotInside(entry.path, target)
    if (why === undefined) yield this.#begin({ ...entry, target })
    else this.skipped.push({ path: entry.path, why })
  }

  async *#file(entry: TarEntry): AsyncGenerator<Uint8Array> {
    const at = join(this.#directory, entry.path)
    if (entry.size <= WHOLE_BYTES) {
      const content = await readFile(at)
      yield this.#begin({ ...entry, size: content.length })
      yield this.#content(content)
      yield entryPadding(content.length)
      return this.#complete({ ...entry, size: content.length })
    }
    yield this.#begin(entry)
    let left = entry.size
    for await (const chunk of createReadStream(at, { end: entry.size - 1 }) as AsyncIterable<Buffer>) {
      left -= chunk.length
      yield this.#content(chunk)
    }
    if (left !== 0) throw new AirlockError('file_changed', `${at} became shorter while it was read.`)
    yield entryPadding(entry.size)
    this.#complete(entry)
  }

  #begin(entry: TarEntry): Uint8Array {
    this.#manifest.take({ kind: 'entry', entry })
    if (entry.kind !== 'file') this.#complete(entry)
    return entryHeader(entry)
  }

  #content(bytes: Buffer): Uint8Array {
    this.#manifest.take({ kind: 'bytes', bytes })
    this.#options.onProgress?.(this.#manifest.counts)
    return bytes
  }

  #complete(entry: TarEntry): void {
    this.#manifest.take({ kind: 'complete', entry })
    this.#options.onProgress?.(this.#manifest.counts)
  }
}

function kindOf(found: Stats): TarEntry['kind'] | undefined {
  if (found.isFile()) return 'file'
  if (found.isDirectory()) return 'directory'
  return found.isSymbolicLink() ? 'symlink' : undefined
}

function entryOf(path: string, kind: TarEntry['kind'], { size, mode, mtimeMs }: Stats): TarEntry {
  return { path, kind, mode: mode & 0o777, size: kind === 'file' ? size : 0, modifiedMs: mtimeMs, target: '' }
}
