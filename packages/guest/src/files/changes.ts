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

  mkdir(path: Buffer, what: 'single' | 'parents'): Nothing {
    asUser(this.#user, () => mkdirSync(path, { recursive: what === 'parents', mode: 0o755 }))
    return {}
  }

  async move(from: Buffer, to: Buffer): Promise<Nothing> {
    const isDone = asUser(this.#user, () => renameIfPossible(from, to))
    if (!isDone) await this.#runAsUser(argvOf(['mv', '-fT', '--'], from, to))
    return {}
  }

  async remove(path: Buffer, what: 'single' | 'tree'): Promise<Nothing> {
    const isDone = asUser(this.#user, () => removeIfPossible(path, what))
    if (!isDone) await this.#runAsUser(argvOf(['rm', '-rf', '--'], path))
    return {}
  }
}

/** False when the target is in another file system, as /workspace and /home/user look to rename(2). */
function renameIfPossible(from: Buffer, to: Buffer): boolean {
  try {
    renameSync(from, to)
    return true
  } catch (error) {
    const errno = errnoOf(error)
    // rename(2) may say either of a directory that is not empty, never of anything else.
    if (errno === 'EEXIST') throw new GuestFailure('directory_not_empty', `${String(to)} is not empty`)
    if (errno !== 'EXDEV') throw error
  }
  throwOnMismatch(lstatSync(from), to)
  return false
}

/** What rename(2) would have refused. */
function throwOnMismatch(from: Stats, to: Buffer): void {
  const target = lstatSync(to, { throwIfNoEntry: false })
  if (!target) return
  if (target.isDirectory() && !from.isDirectory())
    throw new GuestFailure('is_a_directory', `${String(to)} is a directory`)
  if (!target.isDirectory() && from.isDirectory())
    throw new GuestFailure('not_a_directory', `${String(to)} is not a directory`)
  if (target.isDirectory() && readdirSync(to).length > 0)
    throw new GuestFailure('directory_not_empty', `${String(to)} is not empty`)
}

/** False when it is a whole tree. */
function removeIfPossible(path: Buffer, what: 'single' | 'tree'): boolean {
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

/** Arguments of programs are text to Node: a shell makes the bytes of a path that is not UTF-8. */
function argvOf(program: readonly string[], ...paths: readonly Buffer[]): readonly string[] {
  if (paths.every((path) => Buffer.from(path.toString()).equals(path)))
    return [...program, ...paths.map((path) => path.toString())]
  const made = paths.map((_path, at) => `p${at}=$(printf %b. "$${at + 1}")`)
  const used = paths.map((_path, at) => `"\${p${at}%.}"`)
  return ['/bin/sh', '-c', `${made.join('; ')}; exec ${[...program, ...used].join(' ')}`, 'sh', ...paths.map(toOctal)]
}

function toOctal(path: Buffer): string {
  return Array.from(path, (byte) => `\\0${byte.toString(8).padStart(3, '0')}`).join('')
}
