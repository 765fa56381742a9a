import { lstatSync, opendirSync, readlinkSync, type Stats } from 'node:fs'
import { type GuestFileEntry, type GuestResults, pathText } from '@airlock/contract/guest'
import { errnoOf } from '../failure.ts'

/** Well below a frame, whatever the names are. */
const LIST_BYTES = 3 * 1024 * 1024
/** Read at once by one system call. */
const BUFFERED_ENTRIES = 256
const ROOT = Buffer.from('/')

/** Of a symbolic link itself, not of where it points. Preconditions of all here: called as the user. */
export function stat(path: Buffer): GuestFileEntry {
  return describe(path)
}

/** The entries of a directory by name, at most `limit` of them and no more than a frame can carry. */
export function list(path: Buffer, limit: number): GuestResults['file.list'] {
  const entries: GuestFileEntry[] = []
  let bytes = 0
  for (const raw of names(path)) {
    const entry = describeIfThere(inside(path, raw))
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
function* names(path: Buffer): Generator<Buffer> {
  const directory = opendirSync(path, { encoding: 'latin1', bufferSize: BUFFERED_ENTRIES })
  try {
    for (let next = directory.readSync(); next; next = directory.readSync()) yield Buffer.from(next.name, 'latin1')
  } finally {
    directory.closeSync()
  }
}

function inside(directory: Buffer, name: Buffer): Buffer {
  return directory.equals(ROOT) ? Buffer.concat([ROOT, name]) : Buffer.concat([directory, ROOT, name])
}

function describeIfThere(path: Buffer): GuestFileEntry | undefined {
  try {
    return describe(path)
  } catch (error) {
    // It was removed since the directory was read.
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
}

function describe(path: Buffer): GuestFileEntry {
  const stats = lstatSync(path)
  const entry = {
    name: path.subarray(path.lastIndexOf('/') + 1).toString(),
    path: pathText(path),
    kind: kindOf(stats),
    size: stats.size,
    mode: stats.mode & 0o7777,
    modifiedMs: stats.mtimeMs,
  }
  return stats.isSymbolicLink() ? { ...entry, target: readlinkSync(path) } : entry
}

function kindOf(stats: Stats): GuestFileEntry['kind'] {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'directory'
  return stats.isSymbolicLink() ? 'symlink' : 'other'
}
