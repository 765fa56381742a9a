import { posix } from 'node:path'
import { INSIDE, pathBytes } from '@airlock/contract/guest'
import { GuestFailure } from './failure.ts'

/** The same of a file, whose name may be any bytes. */
export function resolveFile(path: string): Buffer {
  const bytes = pathBytes(path)
  if (!bytes) throw new GuestFailure('invalid_path', 'a path must not be empty nor contain ".." or NUL')
  // Each byte is one character, so that resolving changes none of them.
  return Buffer.from(posix.resolve(INSIDE.workspace, bytes.toString('latin1')), 'latin1')
}

/** The absolute form of a caller's path. No ".." can be in it, so it means what it shows. */
export function resolvePath(path: string): string {
  const isPlain = path !== '' && !path.includes('\0') && !path.split('/').includes('..')
  if (!isPlain) throw new GuestFailure('invalid_path', 'a path must not be empty nor contain ".." or NUL')
  return posix.resolve(INSIDE.workspace, path)
}
