import { isKnown } from '../../reading.ts'
import { type Look, type Looked, NO_OUTPUT, type Output, type Shell, type Started } from '../started.ts'

/** `sh -c TEXT NAME ARGS…`, `sh FILE ARGS…`, `sh` for what comes in. */
const shell: Look = (started, shell) => {
  const at = started.words.findIndex((word) => /^-[A-Za-z]*c[A-Za-z]*$/u.test(word))
  if (at >= 0 && isOption(started.words, at)) return runText(started, at, shell)
  const operands = started.words.filter((word, at) => !/^[-+]/u.test(word) && !takesValue(started.words[at - 1]))
  const [script, ...positionals] = operands
  const readsInput = script === undefined || started.words.some((word) => /^-[A-Za-z]*s[A-Za-z]*$/u.test(word))
  if (readsInput || script === '/dev/stdin' || script === '-')
    return runInput(started, { positionals: operands, shell })
  return runFile(script, { positionals, shell })
}

function takesValue(option: string | undefined): boolean {
  return option !== undefined && /^(?:[-+][A-Za-z]*[oO]|--rcfile|--init-file)$/u.test(option)
}

/** Nothing but options stands before it. */
function isOption(words: readonly string[], at: number): boolean {
  return words.slice(0, at).every((word, before) => /^[-+]/u.test(word) || takesValue(words[before - 1]))
}

function runText({ words, stdin, sources }: Started, at: number, shell: Shell): Looked {
  const rest = words.slice(at + 1).filter((word, before, all) => before > 0 || !/^[-+]/u.test(word) || all.length === 1)
  const [text = '', , ...positionals] = rest
  const output = shell.run(text, { positionals, stdin })
  return { output, ...ofText(text, sources) }
}

/** A text that begins with the output of a program is that program's; elsewhere such output is an argument. */
function ofText(text: string, sources: readonly string[]): Looked {
  return isKnown(text.trimStart().charAt(0)) || sources.length === 0 ? { isCovered: true } : { runsOutputOf: sources }
}

/** Interprets what comes in: read, when it is known; else it says whose output it is. */
function runInput(
  { stdin }: Pick<Started, 'stdin'>,
  { positionals, shell }: { readonly positionals: readonly string[]; readonly shell: Shell },
): Looked {
  if (stdin === undefined) return {}
  return runOutput(stdin, { positionals, shell })
}

function runFile(
  path: string,
  { positionals, shell }: { readonly positionals: readonly string[]; readonly shell: Shell },
): Looked {
  const content = shell.file(path)
  return content === undefined ? {} : runOutput(content, { positionals, shell })
}

function runOutput(
  { text, sources }: Output,
  { positionals, shell }: { readonly positionals: readonly string[]; readonly shell: Shell },
): Looked {
  if (text === undefined) return sources.length === 0 ? {} : { runsOutputOf: sources }
  const output = shell.run(text, { positionals })
  return sources.length === 0 ? { output } : { output, runsOutputOf: sources }
}

const evaluate: Look = ({ words, sources }, shell) => {
  const text = words.join(' ')
  return { output: shell.run(text), ...ofText(text, sources) }
}

const source: Look = ({ words: [path = '', ...positionals], stdin }, shell) => {
  if (path === '/dev/stdin' || path === '/dev/fd/0') return runInput({ stdin }, { positionals, shell })
  const content = shell.file(path)
  if (content === undefined) return {}
  if (content.text === undefined) return { runsOutputOf: content.sources }
  shell.run(content.text)
  return { output: NO_OUTPUT }
}

/** `su -c TEXT`, `script -c TEXT`. */
const withText: Look = ({ words, stdin }, shell) => {
  const at = words.findIndex((word) => /^(?:-[A-Za-z]*c|--command(?:=.*)?)$/su.test(word))
  const text = words[at]?.startsWith('--command=') === true ? words[at].slice(10) : words[at + 1]
  if (at >= 0 && text !== undefined) shell.run(text, { positionals: [], stdin })
  return {}
}

/** `watch TEXT`, `at` and `batch` for what comes in. */
const joined: Look = ({ words }, shell) => {
  const at = words.findIndex((word, at) => !word.startsWith('-') && words[at - 1] !== '-n')
  if (at >= 0) shell.run(words.slice(at).join(' '), { positionals: [] })
  return { isCovered: true }
}

const atTime: Look = ({ stdin }, shell) => runInput({ stdin }, { positionals: [], shell })

export const SHELLS: Readonly<Record<string, Look>> = {
  sh: shell,
  bash: shell,
  dash: shell,
  zsh: shell,
  ksh: shell,
  mksh: shell,
  ash: shell,
  rbash: shell,
  fish: shell,
  eval: evaluate,
  source,
  '.': source,
  su: withText,
  runuser: withText,
  script: withText,
  watch: joined,
  hyperfine: joined,
  at: atTime,
  batch: atTime,
}
