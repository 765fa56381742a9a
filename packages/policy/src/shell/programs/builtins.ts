import { HOME, UNKNOWN } from '../../path.ts'
import { isKnown } from '../../reading.ts'
import { type Look, type Looked, NO_OUTPUT } from '../started.ts'

/** What only the shell itself notices: no rule has to cover it. */
const SILENT: Looked = { output: NO_OUTPUT, isCovered: true }
const silent: Look = () => SILENT
const withoutOutput: Look = () => ({ output: NO_OUTPUT })

const cd: Look = ({ words }, { scope }) => {
  const target = words.find((word) => !/^-[LPe@]+$|^--$/u.test(word)) ?? HOME
  const before = scope.get('OLDPWD')
  scope.changeDirectory(target === '-' ? (typeof before === 'string' ? before : UNKNOWN) : target)
  return SILENT
}

/** What it declares was assigned when it was read; here are those that only came up in expansion. */
const declare: Look = ({ program, words }, { scope }) => {
  const names: string[] = []
  for (const word of words) {
    const at = word.indexOf('=')
    if (at <= 0 && program === 'export' && !word.startsWith('-')) scope.exported.add(word)
    if (at <= 0) continue
    scope.set(word.slice(0, at), word.slice(at + 1))
    names.push(word.slice(0, at))
  }
  return { ...SILENT, assigns: names }
}

/** An alias may be used: its text is read as if it were. */
const alias: Look = ({ words }, shell) => {
  for (const word of words) {
    const at = word.indexOf('=')
    if (at > 0) shell.run(word.slice(at + 1), { positionals: [] })
  }
  return SILENT
}

const unset: Look = ({ words }, { scope }) => {
  for (const word of words) scope.unset(word)
  return SILENT
}

const set: Look = ({ words }, { scope }) => {
  const at = words.indexOf('--')
  if (at >= 0) scope.positionals = words.slice(at + 1)
  else if (words.length > 0 && !/^[-+]/u.test(words[0] ?? '')) scope.positionals = words
  return SILENT
}

const shift: Look = ({ words: [count = '1'] }, { scope }) => {
  scope.positionals = /^\d{1,4}$/u.test(count) ? scope.positionals.slice(Number(count)) : [UNKNOWN]
  return SILENT
}

const read: Look = ({ words, stdin }, { scope }) => {
  const names = words.filter((word, at) => /^[A-Za-z_]\w*$/u.test(word) && !/^-[dinNptu]$/u.test(words[at - 1] ?? ''))
  const line = stdin?.text?.split('\n', 1)[0]
  const values = line?.split(/[ \t]+/u).filter((value) => value !== '') ?? []
  for (const [at, name] of names.entries()) {
    const isLast = at === names.length - 1
    scope.set(name, line === undefined ? UNKNOWN : isLast ? values.slice(at).join(' ') : (values[at] ?? ''))
  }
  return SILENT
}

const fill: Look = ({ words }, { scope }) => {
  const name = words.findLast((word) => /^[A-Za-z_]\w*$/u.test(word))
  if (name !== undefined) scope.set(name, UNKNOWN)
  return SILENT
}

const trap: Look = ({ words }, shell) => {
  const text = words.find((word) => !word.startsWith('-'))
  if (text !== undefined && words.length > 1 && isKnown(text)) shell.run(text, { positionals: [] })
  return SILENT
}

export const BUILTINS: Readonly<Record<string, Look>> = {
  cd,
  pushd: cd,
  popd: (_started, { scope }) => {
    scope.changeDirectory(UNKNOWN)
    return SILENT
  },
  export: declare,
  declare,
  typeset: declare,
  local: declare,
  readonly: declare,
  alias,
  unset,
  set,
  shift,
  read,
  mapfile: fill,
  readarray: fill,
  getopts: fill,
  let: silent,
  trap,
  ':': silent,
  true: silent,
  false: silent,
  test: silent,
  '[': silent,
  sleep: silent,
  wait: silent,
  mkdir: withoutOutput,
  touch: withoutOutput,
  chmod: withoutOutput,
  rm: withoutOutput,
}
