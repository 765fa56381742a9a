import { existsSync, lstatSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What `airlock` is in this clone. */
export const PROGRAM = fileURLToPath(new URL('../../../cli/bin/airlock', import.meta.url))

/** In the PATH of every user of a machine, and of sudo on Debian. */
const BIN = '/usr/local/bin'
const NAME = 'airlock'
/** How a link to any clone ends. */
const OF_A_CLONE = /\/packages\/cli\/bin\/airlock$/u

interface Outcome<T> {
  readonly path: string
  readonly outcome: T
}

/**
 * Puts `airlock` into the PATH of this machine. `taken`: something else has the name, and stays; only a link to a clone that
 * is gone is replaced. `refused`: the directory is not ours to change.
 */
export function linkCommand(program = PROGRAM, bin = BIN): Outcome<'made' | 'kept' | 'taken' | 'refused'> {
  const path = join(bin, NAME)
  const found = readLink(path)
  if (found === program) return { path, outcome: 'kept' }
  if (found !== undefined && (existsSync(found) || !OF_A_CLONE.test(found))) return { path, outcome: 'taken' }
  return { path, outcome: makeLink(path, program) }
}

/** Undoes it. `taken`: the name leads elsewhere, and stays. */
export function unlinkCommand(program = PROGRAM, bin = BIN): Outcome<'removed' | 'absent' | 'taken'> {
  const path = join(bin, NAME)
  const found = readLink(path)
  if (found === undefined) return { path, outcome: 'absent' }
  if (found !== program) return { path, outcome: 'taken' }
  rmSync(path)
  return { path, outcome: 'removed' }
}

/** Where a link leads, or the path itself when it is no link. Undefined when nothing is there. */
function readLink(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return undefined
  return found.isSymbolicLink() ? resolve(dirname(path), readlinkSync(path)) : path
}

/** By a name of its own first: nobody finds half a command. */
function makeLink(path: string, program: string): 'made' | 'refused' {
  const fresh = `${path}.${process.pid}`
  try {
    symlinkSync(program, fresh)
    renameSync(fresh, path)
    return 'made'
  } catch (error) {
    if (error instanceof Error && 'code' in error && REFUSALS.has(String(error.code))) return 'refused'
    throw error
  }
}

/** No such directory, no right to it, or a file system that nobody may write to. */
const REFUSALS: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS'])
