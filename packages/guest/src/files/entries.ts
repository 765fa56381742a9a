import { lstatSync, opendirSync, readlinkSync, type Stats } from 'node:fs'
import { posix } from 'node:path'
import type { GuestFileEntry, GuestResults } from '@airlock/contract/guest'
import { errnoOf } from '../failure.ts'

/** Well below a frame, whatever the names are. */
const LIST_BYTES = 3 * 1024 * 1024
/** Read at once by one system call. */
const BUFFERED_ENTRIES = 256

/** Of a symbolic link itself, not of where it points. Preconditions of all here: called as the user. */
export function stat(path: string): GuestFileEntry {
  return describe(Buffer.from(path), posix.basename(path), path)
}

/** The entries of a directory by name, at most `limit` of them and no more than a frame can carry. */
export function list(path: string, limit: number): GuestResults['file.list'] {
  const entries: GuestFileEntry[] = []
  let bytes = 0
  for (const raw of names(path)) {
    const name = raw.toString('utf8')
    const entry = describeIfThere(
      Buffer.concat([Buffer.from(posix.join(path, '/')), raw]),
      name,
      posix.join(path, name),
    )
    if (!entry) continue
    bytes += Buffer.byteLength(JSON.stringify(entry)) + 1
    if (entries.length >= limit || bytes > LIST_BYTES) return { entries: sorted(entries), truncated: true }
    entries.push(entry)
  }
  return { entries: sorted(entries), truncated: false }
}

function sorted(entries: readonly GuestFileEntry[]): readonly GuestFileEntry[] {
  return entries.toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))
}

/** As bytes, for a name need not be UTF-8. */
function* names(path: string): Generator<Buffer> {
  const directory = opendirSync(path, { encoding: 'latin1', bufferSize: BUFFERED_ENTRIES })
  try {
    for (let next = directory.readSync(); next; next = directory.readSync()) yield Buffer.from(next.name, 'latin1')
  } finally {
    directory.closeSync()
  }
}

function describeIfThere(raw: Buffer, name: string, path: string): GuestFileEntry | undefined {
  try {
    return describe(raw, name, path)
  } catch (error) {
    // It was removed since the directory was read.
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
}

function describe(raw: Buffer, name: string, path: string): GuestFileEntry {
  const stats = lstatSync(raw)
  const entry = {
    name,
    path,
    kind: kindOf(stats),
    size: stats.size,
    mode: stats.mode & 0o7777,
    modifiedMs: stats.mtimeMs,
  }
  return stats.isSymbolicLink() ? { ...entry, target: readlinkSync(raw) } : entry
}

function kindOf(stats: Stats): GuestFileEntry['kind'] {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'directory'
  return stats.isSymbolicLink() ? 'symlink' : 'other'
}
