import { lstatSync, mkdirSync, readdirSync, renameSync, rmdirSync, type Stats, unlinkSync } from 'node:fs'
import { asUser, type User } from '../as-user.ts'
import { errnoOf, GuestFailure } from '../failure.ts'

type Nothing = Record<string, never>
type RunAsUser = (argv: readonly string[]) => Promise<void>

/** Work that one system call can do is done here; what may take long is left to a program of the user. */
export class FileChanges {
  readonly #user: User
  readonly #runAsUser: RunAsUser

  constructor(user: User, runAsUser: RunAsUser) {
    this.#user = user
    this.#runAsUser = runAsUser
  }

  mkdir(path: string, what: 'single' | 'parents'): Nothing {
    asUser(this.#user, () => mkdirSync(path, { recursive: what === 'parents', mode: 0o755 }))
    return {}
  }

  async move(from: string, to: string): Promise<Nothing> {
    const isDone = asUser(this.#user, () => renameIfPossible(from, to))
    if (!isDone) await this.#runAsUser(['mv', '-fT', '--', from, to])
    return {}
  }

  async remove(path: string, what: 'single' | 'tree'): Promise<Nothing> {
    const isDone = asUser(this.#user, () => removeIfPossible(path, what))
    if (!isDone) await this.#runAsUser(['rm', '-rf', '--', path])
    return {}
  }
}

/** False when the target is in another file system, as /workspace and /home/user look to rename(2). */
function renameIfPossible(from: string, to: string): boolean {
  try {
    renameSync(from, to)
    return true
  } catch (error) {
    const errno = errnoOf(error)
    // rename(2) may say either of a directory that is not empty, never of anything else.
    if (errno === 'EEXIST') throw new GuestFailure('directory_not_empty', `${to} is not empty`)
    if (errno !== 'EXDEV') throw error
  }
  throwOnMismatch(lstatSync(from), to)
  return false
}

/** What rename(2) would have refused. */
function throwOnMismatch(from: Stats, to: string): void {
  const target = lstatSync(to, { throwIfNoEntry: false })
  if (!target) return
  if (target.isDirectory() && !from.isDirectory()) throw new GuestFailure('is_a_directory', `${to} is a directory`)
  if (!target.isDirectory() && from.isDirectory()) throw new GuestFailure('not_a_directory', `${to} is not a directory`)
  if (target.isDirectory() && readdirSync(to).length > 0)
    throw new GuestFailure('directory_not_empty', `${to} is not empty`)
}

/** False when it is a whole tree. */
function removeIfPossible(path: string, what: 'single' | 'tree'): boolean {
  if (!lstatSync(path).isDirectory()) {
    unlinkSync(path)
    return true
  }
  try {
    rmdirSync(path)
    return true
  } catch (error) {
    if (what === 'tree' && ['ENOTEMPTY', 'EEXIST'].includes(errnoOf(error))) return false
    throw error
  }
}
