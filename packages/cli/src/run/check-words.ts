import { statSync } from 'node:fs'
import { extname } from 'node:path'
import { quote } from '../text/quote.ts'
import { UsageError } from '../usage.ts'
import { promptOf } from './prompt-of.ts'
import { isCode } from './run-file.ts'

/** Endings of files that people have beside them, and no program has. */
const ENDINGS: ReadonlySet<string> = new Set(
  ['c', 'cpp', 'csv', 'go', 'gz', 'html', 'ipynb', 'java', 'json', 'jsx', 'log', 'md', 'parquet', 'pdf', 'php', 'pl']
    .concat(['png', 'r', 'rb', 'rs', 'sql', 'tar', 'toml', 'tsx', 'txt', 'xlsx', 'xml', 'yaml', 'yml', 'zip'])
    .map((ending) => `.${ending}`),
)

/** Before a sandbox is made: throws where the first word cannot be a program of it, and says what to type. */
export function checkProgram(word: string, options: { readonly with?: readonly string[] }): void {
  // It may be in what is copied in.
  if (word.startsWith('/') || options.with !== undefined) return
  const isPath = word.includes('/') || word === '.' || word === '..'
  const found = statSync(word, { throwIfNoEntry: false })
  const shown = quote(word)
  if (!found) {
    if (!isPath && !isCode(word) && !ENDINGS.has(extname(word))) return
    throw new UsageError(`There is no file ${word} here.`, `For a program of the sandbox: airlock run -- ${shown}`)
  }
  // A plain name is a program of the sandbox, whatever is here.
  if (!isPath && extname(word) === '') return
  const what = found.isDirectory() ? 'a directory' : 'no program that airlock runs (.py, .js, .ts, .sh)'
  throw new UsageError(`${word} is ${what}.`, `To copy it in: airlock run --with ${shown} -- PROGRAM`)
}

/** Words that only a shell understands. */
const BUILTINS: ReadonlySet<string> = new Set(['alias', 'cd', 'export', 'set', 'source', 'ulimit', 'umask', 'unset'])

/** Throws where one word is a whole line of shell, or means something to a shell alone. `instead`: what takes one. */
export function throwOnLine(word: string, instead: string): void {
  const [program = '', ...rest] = word.trim().split(/\s+/u)
  if (BUILTINS.has(program) && rest.length === 0)
    throw new UsageError(
      `${program} is a word of a shell, and no program.`,
      `For a line of shell: ${instead} '${program} …'`,
    )
  const isFile = isCode(word) && promptOf([program]) === undefined
  if (rest.length === 0 || program.includes('/') || isFile) return
  const shown = quote(word)
  throw new UsageError(`${shown} is one word, and no program.`, `For a line of shell: ${instead} ${shown}`)
}
