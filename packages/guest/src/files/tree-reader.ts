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
    const names = this.#try(directory, () => readdirSync(this.#at(directory), { encoding: 'buffer' }))
    if (depth >= MAX_DEPTH && names && names.length > 0)
      throw new GuestFailure('archive_invalid', `${directory.slice(0, 200)} is too deep for an archive.`)
    for (const raw of (names ?? []).toSorted((a, b) => Buffer.compare(a, b))) {
      const name = raw.toString()
      const path = directory === '' ? name : `${directory}/${name}`
      const why = Buffer.from(name).equals(raw) ? whyNotName(name) : 'has a name that is not UTF-8'
      if (why === undefined) yield* this.#item(path, depth)
      else this.#skip(path, why)
    }
  }

  *#item(path: string, depth: number): Generator<TreeItem> {
    const stats = this.#try(path, () => lstatSync(this.#at(path)))
    if (!stats) return
    if (stats.isFile()) {
      const item = this.#try(path, () => this.#file(path))
      if (item) yield this.#counted(item)
    } else if (stats.isSymbolicLink()) {
      const entry = this.#try(path, () => this.#link(path, stats))
      if (entry) yield this.#counted({ entry, content: NOTHING })
    } else if (stats.isDirectory()) {
      yield this.#counted({ entry: entryOf(path, 'directory', stats), content: NOTHING })
      yield* this.#inside(path, depth + 1)
    } else this.#skip(path, 'is no file, directory or link')
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
      return asUser(this.#user, work)
    } catch (error) {
      const errno = errnoOf(error)
      if (CHANGED.has(errno)) return undefined
      if (errno !== 'EACCES' && errno !== 'EPERM') throw error
      this.#skip(path, 'may not be read by the user of the sandbox')
      return undefined
    }
  }

  #skip(path: string, why: string): void {
    this.#skippedCount++
    if (this.#skipped.length < SKIPPED_SHOWN) this.#skipped.push({ path: path.slice(0, 300), why })
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
