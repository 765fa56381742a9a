import type { Look, Looked, Shell, Started } from '../started.ts'
import { BUILTINS } from './builtins.ts'
import { EMBEDDED } from './embedded.ts'
import { FINDERS } from './finders.ts'
import { INTERPRETERS } from './interpreters.ts'
import { SHELLS } from './shells.ts'
import { TEXT } from './text.ts'
import { WRAPPERS } from './wrappers.ts'

const PROGRAMS: ReadonlyMap<string, Look> = new Map(
  Object.entries({ ...TEXT, ...EMBEDDED, ...INTERPRETERS, ...FINDERS, ...WRAPPERS, ...SHELLS, ...BUILTINS }),
)

/** Versions are a part of names: python3.12, perl5.36. */
const VERSIONED = /^(python|pypy|perl|ruby|php|lua|node)[\d.]+$/u

const NOTHING: Looked = {}

/** Looks into the arguments of a program that starts others. */
export function lookInto(started: Started, shell: Shell): Looked {
  const look = PROGRAMS.get(started.program) ?? PROGRAMS.get(VERSIONED.exec(started.program)?.[1] ?? '')
  return look === undefined ? NOTHING : look(started, shell)
}
