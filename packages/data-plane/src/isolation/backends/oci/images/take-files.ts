import { chmodSync, constants, copyFileSync, linkSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isSystemError } from '../system-error.ts'
import { makeDirectory } from './image.ts'

/** Shares the blocks where the file system can. */
export function copyProgram(from: string, to: string): void {
  makeDirectory(dirname(to))
  copyFileSync(from, to, constants.COPYFILE_FICLONE)
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
