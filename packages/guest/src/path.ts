import { posix } from 'node:path'
import { INSIDE } from '@airlock/contract/guest'
import { GuestFailure } from './failure.ts'

/** The absolute form of a caller's path. No ".." can be in it, so it means what it shows. */
export function resolvePath(path: string): string {
  const isPlain = path !== '' && !path.includes('\0') && !path.split('/').includes('..')
  if (!isPlain) throw new GuestFailure('invalid_path', 'a path must not be empty nor contain ".." or NUL')
  return posix.resolve(INSIDE.workspace, path)
}
