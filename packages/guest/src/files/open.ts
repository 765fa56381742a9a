import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync, type Stats } from 'node:fs'
import { CHUNK_BYTES } from '@airlock/contract/guest'
import { errnoOf, GuestFailure } from '../failure.ts'

/** What is read at once of a file that does not say how long it is. */
const UNSIZED_BYTES = 4 * 1024 * 1024

const { O_RDONLY, O_WRONLY, O_CREAT, O_TRUNC, O_APPEND, O_NONBLOCK, O_NOFOLLOW } = constants

export interface Opened {
  readonly fd: number
  readonly size: number
  /** All of it, where the kernel makes it up as it is read: such files, as in /proc, say that they are empty. */
  readonly content?: Buffer
}

/** Never blocks: a FIFO or a device is opened at most to see that it is one. */
export function openForReading(path: Buffer): Opened {
  const fd = openSync(path, O_RDONLY | O_NONBLOCK)
  const { size } = throwOnSpecial(fd)
  if (size > 0) return { fd, size }
  try {
    const content = readUnsized(fd)
    return { fd, size: content.length, content }
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/**
 * A regular file at exactly this path: neither it nor a directory above it is a link. Never blocks. Such files as in /proc, which the
 * kernel makes up, are empty.
 */
export function openExactly(path: Buffer, maxBytes: number): Opened {
  const fd = openNoLink(path)
  try {
    const { size } = throwOnSpecialStats(fstatSync(fd))
    // The name may have been swapped since it was found, and a directory above it for a link.
    if (!readlinkSync(`/proc/self/fd/${fd}`, { encoding: 'buffer' }).equals(path))
      throw new GuestFailure('file_changed', 'the path leads through a link, or changed while it was opened')
    if (size > maxBytes) throw new GuestFailure('file_changed', `the file is larger than ${maxBytes} bytes`)
    return { fd, size }
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** A name that became a link since it was found has changed. */
function openNoLink(path: Buffer): number {
  try {
    return openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
  } catch (error) {
    if (errnoOf(error) !== 'ELOOP' && errnoOf(error) !== 'ENXIO') throw error
    throw new GuestFailure('file_changed', 'the path is a link or no file')
  }
}

function readUnsized(fd: number): Buffer {
  const chunks: Buffer[] = []
  for (let total = 0; total <= UNSIZED_BYTES;) {
    const chunk = Buffer.alloc(CHUNK_BYTES)
    const length = readSync(fd, chunk, 0, chunk.length, null)
    if (length === 0) return Buffer.concat(chunks)
    total += length
    chunks.push(chunk.subarray(0, length))
  }
  throw new GuestFailure('invalid_request', `the file has no length and more than ${UNSIZED_BYTES} bytes`)
}

export function openForWriting(path: Buffer, mode: 'truncate' | 'append'): number {
  const how = mode === 'append' ? O_APPEND : O_TRUNC
  const fd = openSync(path, O_WRONLY | O_CREAT | how | O_NONBLOCK, 0o644)
  throwOnSpecial(fd)
  return fd
}

function throwOnSpecial(fd: number): Stats {
  try {
    return throwOnSpecialStats(fstatSync(fd))
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

function throwOnSpecialStats(stats: Stats): Stats {
  if (stats.isFile()) return stats
  if (stats.isDirectory()) throw new GuestFailure('is_a_directory', 'the path is a directory')
  throw new GuestFailure('permission_denied', 'the path is not a regular file')
}
