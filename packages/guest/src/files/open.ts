import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs'
import { GuestFailure } from '../failure.ts'

const { O_RDONLY, O_WRONLY, O_CREAT, O_TRUNC, O_APPEND, O_NONBLOCK } = constants

/** Never blocks: a FIFO or a device is opened at most to see that it is one. */
export function openForReading(path: string): { readonly fd: number; readonly size: number } {
  const fd = openSync(path, O_RDONLY | O_NONBLOCK)
  return { fd, size: throwOnSpecial(fd).size }
}

export function openForWriting(path: string, mode: 'truncate' | 'append'): number {
  const how = mode === 'append' ? O_APPEND : O_TRUNC
  const fd = openSync(path, O_WRONLY | O_CREAT | how | O_NONBLOCK, 0o644)
  throwOnSpecial(fd)
  return fd
}

function throwOnSpecial(fd: number): Stats {
  const stats = fstatSync(fd)
  if (stats.isFile()) return stats
  closeSync(fd)
  if (stats.isDirectory()) throw new GuestFailure('is_a_directory', 'the path is a directory')
  throw new GuestFailure('permission_denied', 'the path is not a regular file')
}
