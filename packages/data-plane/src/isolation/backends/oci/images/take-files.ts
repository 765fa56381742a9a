import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { isSystemError } from '../system-error.ts'
import { makeDirectory } from './image.ts'

const { COPYFILE_FICLONE, O_RDONLY, O_NOFOLLOW } = constants

/** Shares the blocks where the file system can. */
export function copyProgram(from: string, to: string): void {
  makeDirectory(dirname(to))
  copyFileSync(from, to, COPYFILE_FICLONE)
  chmodSync(to, 0o755)
}

/**
 * A second name for a program that we run ourselves, where both are on one file system; else a copy. Whoever replaces the first
 * name leaves this one as it was, and nobody can write into a program that runs. One that others than root may change is copied.
 */
export function linkProgram(from: string, to: string): void {
  makeDirectory(dirname(to))
  const { uid, mode } = statSync(from)
  if (uid !== 0 || (mode & 0o022) !== 0 || (mode & 0o005) !== 0o005) return copyProgram(from, to)
  try {
    linkSync(from, to)
  } catch (error) {
    if (!isSystemError(error, 'EXDEV', 'EPERM', 'EMLINK')) throw error
    copyProgram(from, to)
  }
}

/** What is named after its content must have it after a power loss too. `itself`: the directory, not what is in it. */
export function syncTree(path: string, what: 'all' | 'itself' = 'all'): void {
  if (what === 'all')
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const inner = join(path, entry.name)
      if (entry.isDirectory()) syncTree(inner)
      else sync(inner)
    }
  sync(path)
}

function sync(path: string): void {
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
