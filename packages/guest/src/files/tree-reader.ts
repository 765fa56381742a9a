import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  statSync,
  type Stats,
} from 'node:fs'
import { MAX_DEPTH, TAR_BOUNDS, type TarEntry, whyNotInside, whyNotName } from '@airlock/std/tar'
import { asUser, type User } from '../as-user.ts'
import { errnoOf, GuestFailure } from '../failure.ts'

/** A file of the tree, with its content where it is short, so that its size is right whatever is done to it meanwhile. */
export type TreeItem =
  | { readonly entry: TarEntry; readonly content: Buffer }
  | { readonly entry: TarEntry; readonly fd: number }

export interface Skipped {
  readonly path: string
  readonly why: string
}

const WHOLE_BYTES = 256 * 1024
/** What is looked at, and held, before any of it is sent. */
const BATCH = { names: 128, bytes: 1024 * 1024 }
const SKIPPED_SHOWN = 100
const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants
/** A name went away or became something else since it was listed. */
const CHANGED: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'])

export function throwUnlessDirectory(path: Buffer): void {
  if (!statSync(path).isDirectory()) throw new GuestFailure('not_a_directory', `${String(path)} is not a directory`)
}

/** Everything below a directory that an archive may hold, with the rights of user code, in the order of the names. */
export class TreeReader {
  readonly #root: Buffer
  readonly #user: User
  readonly #skipped: Skipped[] = []
  #skippedCount = 0
  #entries = 0

  constructor(root: Buffer, user: User) {
    this.#root = root
    this.#user = user
  }

  /** The first of those that were left out, and how many there were. */
  get skipped(): { readonly skipped: readonly Skipped[]; readonly count: number } {
    return { skipped: this.#skipped, count: this.#skippedCount }
  }

  /** Whoever takes an item with a descriptor closes it. */
  *items(): Generator<TreeItem> {
    yield* this.#inside('', 0)
  }

  *#inside(directory: string, depth: number): Generator<TreeItem> {
    const names = asUser(this.#user, () => this.#try(directory, () => this.#names(directory))) ?? []
    if (depth >= MAX_DEPTH && names.length > 0)
      throw new GuestFailure('archive_invalid', `${directory.slice(0, 200)} is too deep for an archive.`)
    while (names.length > 0)
      yield* this.#each(
        asUser(this.#user, () => this.#batch(directory, names)),
        depth,
      )
  }

  *#each(items: TreeItem[], depth: number): Generator<TreeItem> {
    try {
      for (let item = items.shift(); item; item = items.shift()) {
        yield this.#counted(item)
        if (item.entry.kind === 'directory') yield* this.#inside(item.entry.path, depth + 1)
      }
    } finally {
      // The reader left: nobody else closes these.
      for (const item of items) if ('fd' in item) closeSync(item.fd)
    }
  }

  /** Sorted so that the next one is the last. */
  #names(directory: string): Buffer[] {
    return readdirSync(this.#at(directory), { encoding: 'buffer' }).toSorted((a, b) => Buffer.compare(b, a))
  }

  /** Takes some of the names, in one change of rights: each costs as much as reading a file. */
  #batch(directory: string, names: Buffer[]): TreeItem[] {
    const items: TreeItem[] = []
    for (let bytes = 0, count = 0; bytes < BATCH.bytes && count < BATCH.names; count++) {
      const raw = names.pop()
      if (raw === undefined) break
      const name = raw.toString()
      const path = directory === '' ? name : `${directory}/${name}`
      const why = Buffer.from(name).equals(raw) ? whyNotName(name) : 'has a name that is not UTF-8'
      const item = why === undefined ? this.#try(path, () => this.#item(path)) : this.#skip(path, why)
      if (!item) continue
      items.push(item)
      if ('fd' in item) break
      bytes += item.content.length
    }
    return items
  }

  #item(path: string): TreeItem | undefined {
    const stats = lstatSync(this.#at(path))
    if (stats.isFile()) return this.#file(path)
    if (stats.isDirectory()) return { entry: entryOf(path, 'directory', stats), content: NOTHING }
    if (!stats.isSymbolicLink()) return this.#skip(path, 'is no file, directory or link')
    const entry = this.#link(path, stats)
    return entry && { entry, content: NOTHING }
  }

  /** Never blocks, and follows no link. */
  #file(path: string): TreeItem | undefined {
    const fd = openSync(this.#at(path), O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
    let isHandedOver = false
    try {
      const stats = fstatSync(fd)
      // It became something else since it was listed.
      if (!stats.isFile()) return undefined
      const entry = entryOf(path, 'file', stats)
      isHandedOver = stats.size > WHOLE_BYTES
      if (isHandedOver) return { entry, fd }
      const content = readUpTo(fd, stats.size)
      return { entry: { ...entry, size: content.length }, content }
    } finally {
      if (!isHandedOver) closeSync(fd)
    }
  }

  #link(path: string, stats: Stats): TarEntry | undefined {
    const raw = readlinkSync(this.#at(path), { encoding: 'buffer' })
    const target = raw.toString()
    const why = Buffer.from(target).equals(raw) ? whyNotInside(path, target) : 'is a link to a name that is not UTF-8'
    if (why !== undefined) this.#skip(path, why)
    return why === undefined ? { ...entryOf(path, 'symlink', stats), target } : undefined
  }

  #counted(item: TreeItem): TreeItem {
    if (++this.#entries <= TAR_BOUNDS.entries) return item
    if ('fd' in item) closeSync(item.fd)
    throw new GuestFailure(
      'archive_invalid',
      `There are more than ${TAR_BOUNDS.entries} entries: read parts of the tree.`,
    )
  }

  /** Left out: what went away meanwhile, and what user code may not read. */
  #try<T>(path: string, work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      const errno = errnoOf(error)
      if (CHANGED.has(errno)) return undefined
      if (errno !== 'EACCES' && errno !== 'EPERM') throw error
      this.#skip(path, 'may not be read by the user of the sandbox')
      return undefined
    }
  }

  #skip(path: string, why: string): undefined {
    this.#skippedCount++
    if (this.#skipped.length < SKIPPED_SHOWN) this.#skipped.push({ path: path.slice(0, 300), why })
    return undefined
  }

  #at(path: string): Buffer {
    return path === '' ? this.#root : Buffer.concat([this.#root, Buffer.from(`/${path}`)])
  }
}

const NOTHING = Buffer.alloc(0)

function entryOf(path: string, kind: TarEntry['kind'], { size, mode, mtimeMs }: Stats): TarEntry {
  return { path, kind, mode: mode & 0o777, size: kind === 'file' ? size : 0, modifiedMs: mtimeMs, target: '' }
}

function readUpTo(fd: number, size: number): Buffer {
  const content = Buffer.allocUnsafe(size)
  let length = 0
  while (length < size) {
    const read = readSync(fd, content, length, size - length, null)
    if (read === 0) break
    length += read
  }
  return content.subarray(0, length)
}
