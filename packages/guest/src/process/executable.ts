import { type Stats, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { asUser, type User } from '../as-user.ts'
import { errnoOf, GuestFailure } from '../failure.ts'

const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'

/** Throws when user code could not enter `cwd` or not execute `program`: better than a command that ends with 127. */
export function throwOnUnstartable(
  user: User,
  command: { readonly program: string; readonly cwd: string; readonly path: string | undefined },
): void {
  asUser(user, () => {
    // The dot needs the right to enter, and that it is a directory.
    statSync(join(command.cwd, '/') + '.')
    throwOnMissing(user, command)
  })
}

function throwOnMissing(
  user: User,
  command: { readonly program: string; readonly cwd: string; readonly path: string | undefined },
): void {
  const { program, cwd } = command
  if (program.includes('/')) {
    const found = look(resolve(cwd, program))
    if (!found) throw new GuestFailure('executable_not_found', `There is no program ${program} in the sandbox.`)
    if (!isExecutable(user, found))
      throw new GuestFailure(
        'permission_denied',
        `${program} cannot be executed: chmod +x it, or name its interpreter.`,
      )
    return
  }
  const directories = (command.path ?? DEFAULT_PATH).split(':')
  for (const directory of directories) {
    const found = look(resolve(cwd, directory, program))
    if (found && isExecutable(user, found)) return
  }
  throw new GuestFailure('executable_not_found', `There is no program ${program} in the PATH of the sandbox.`)
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'ENAMETOOLONG', 'ELOOP'].includes(errnoOf(error))) return undefined
    throw error
  }
}

/** By the mode bits, for access(2) would ask for the real uid, which stays ours. */
function isExecutable(user: User, file: Stats): boolean {
  if (!file.isFile()) return false
  if (file.uid === user.uid) return (file.mode & 0o100) !== 0
  return (file.mode & (file.gid === user.gid ? 0o010 : 0o001)) !== 0
}
