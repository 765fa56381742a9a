import { UNKNOWN } from '../../path.ts'
import type { Look, Shell, Started } from '../started.ts'
import { splitOptions } from './options.ts'

const ACTIONS = new Set(['-exec', '-execdir', '-ok', '-okdir'])
const MAX_STARTS = 8

const find: Look = ({ words, sources }, shell) => {
  const end = words.findIndex((word) => /^(?:-[^LHPDO]|[!(])/u.test(word))
  const starts = (end < 0 ? words : words.slice(0, end)).filter((word) => !word.startsWith('-'))
  const found = foundPaths(starts.length === 0 ? ['.'] : starts.slice(0, MAX_STARTS), words)
  if (words.includes('-delete')) shell.note({ program: 'rm', words: ['-r', '-f', ...found], isCovered: true })
  for (const [at, word] of words.entries()) if (ACTIONS.has(word)) act(words.slice(at + 1), { found, sources, shell })
  return { output: { text: undefined, sources: ['find'], paths: found } }
}

/** Where the search begins, or below it what has the name. What is searched from the top is everything. */
function foundPaths(starts: readonly string[], words: readonly string[]): readonly string[] {
  const at = words.findIndex((word) => /^-i?(?:name|path|wholename)$/u.test(word))
  const name = at < 0 ? undefined : words[at + 1]
  const isNarrow = name !== undefined && name !== '*' && words[at - 1] !== '!' && words[at - 1] !== '-not'
  return isNarrow
    ? starts.map((start) => (/^\/+\.?$/u.test(start) ? start : `${start}/${name.replace(/^\*?\//u, '')}`))
    : starts
}

function act(
  words: readonly string[],
  { found, sources, shell }: { found: readonly string[]; sources: readonly string[]; shell: Shell },
): void {
  const end = words.findIndex((word) => word === ';' || word === '+')
  const argv = end < 0 ? words : words.slice(0, end)
  shell.start(
    argv.flatMap((word) => (word === '{}' ? found : [word.replaceAll('{}', () => found[0] ?? UNKNOWN)])),
    { sources },
  )
}

/** What comes in is appended, or put where `-I` says. */
const xargs: Look = ({ words, stdin, sources }, shell) => {
  const valued = [
    '-I',
    '-n',
    '-P',
    '-L',
    '-d',
    '-s',
    '-a',
    '-E',
    '--max-args',
    '--max-procs',
    '--delimiter',
    '--arg-file',
  ]
  const { options, rest } = splitOptions(words, valued)
  const items = itemsOf(stdin)
  const mark = markOf(options)
  const argv = rest.length === 0 ? ['echo'] : rest
  const marked = argv.flatMap((word) =>
    word === mark ? items : [word.replaceAll(mark ?? '\0', () => items[0] ?? UNKNOWN)],
  )
  const from = stdin?.text === undefined ? [...sources, ...(stdin?.sources ?? [])] : sources
  return { output: shell.start(mark === undefined ? [...argv, ...items] : marked, { sources: from }), isCovered: true }
}

function markOf(options: readonly string[]): string | undefined {
  const at = options.findIndex((option) => option.startsWith('-I') || option === '-i' || option.startsWith('--replace'))
  const option = options[at]
  if (option === undefined) return undefined
  if (option === '-I') return options[at + 1] ?? '{}'
  return option.startsWith('-I') ? option.slice(2) : (option.split('=')[1] ?? '{}')
}

function itemsOf(stdin: Started['stdin']): readonly string[] {
  if (stdin?.paths !== undefined) return stdin.paths
  if (stdin?.text === undefined) return [UNKNOWN]
  return stdin.text
    .split(/[\s\0]+/u)
    .filter((item) => item !== '')
    .slice(0, 64)
}

const list: Look = ({ words }) => {
  const paths = words.filter((word) => !word.startsWith('-'))
  return { output: { text: undefined, sources: ['ls'], paths: paths.map((path) => `${path}/*`) } }
}

/** `parallel rm {} ::: a b` */
const parallel: Look = ({ words, stdin, sources }, shell) => {
  const { rest } = splitOptions(words, ['-j', '--jobs', '-n', '-N'])
  const at = rest.indexOf(':::')
  const argv = at < 0 ? rest : rest.slice(0, at)
  const items = at < 0 ? itemsOf(stdin) : rest.slice(at + 1)
  const line = argv.some((word) => word.includes('{}'))
    ? argv.map((word) => word.replaceAll('{}', () => items[0] ?? UNKNOWN))
    : [...argv, ...items]
  if (argv.length === 0) for (const item of items) shell.run(item, { positionals: [] })
  else if (argv.length === 1) shell.run(line.join(' '), { positionals: [] })
  else shell.start(line, { sources })
  return {}
}

export const FINDERS: Readonly<Record<string, Look>> = { find, xargs, ls: list, parallel }
