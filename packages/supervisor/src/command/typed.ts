import { realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Environment } from '../config.ts'
import { PROGRAM } from './link.ts'

/** How a person types `airlock` in another terminal. */
export interface TypedCommand {
  /** `airlock` where PATH leads to this clone, else its path. It works as pasted. */
  readonly word: string
  /** The line that puts it into PATH. Undefined where it is there. */
  readonly pathLine: string | undefined
  /** Another program of that name, which PATH leads to. */
  readonly other: string | undefined
}

export function typedCommand(env: Environment, program = PROGRAM): TypedCommand {
  const found = findInPath(env)
  if (found !== undefined && isOfClone(found, program))
    return { word: 'airlock', pathLine: undefined, other: undefined }
  return { word: quote(program), pathLine: `export PATH=${quote(dirname(program))}:$PATH`, other: found }
}

/** For a shell, as it stands. */
export function quote(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** As a shell of this user finds it, without the directories that npm puts in front of its scripts. */
function findInPath(env: Environment): string | undefined {
  const all = (env['PATH'] ?? '').split(':').filter((directory) => directory.startsWith('/'))
  const directories = env['npm_lifecycle_event'] === undefined ? all : all.filter((path) => !OF_NPM.test(path))
  return directories.map((directory) => join(directory, 'airlock')).find(isProgram)
}

const OF_NPM = /\/node_modules\/(?:\.bin|npm\/node_modules\/@npmcli\/run-script\/.*|.*node-gyp-bin)$/u

function isProgram(path: string): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found?.isFile() === true && (found.mode & 0o111) !== 0
  } catch {
    // A directory that this user may not enter, or no directory: a shell passes it by too.
    return false
  }
}

/** The link to it, or what npm made of its package. */
function isOfClone(path: string, program: string): boolean {
  return dirname(realpathSync(path)) === dirname(realpathSync(program))
}
