import type { Runtime } from '@airlock/sdk'
import { basename } from 'node:path'
import type { Context } from '../context.ts'
import type { RunOptions, TerminalOptions } from '../options/command-options.ts'
import { UsageError } from '../usage.ts'

/** Programs that ask at a terminal for what to do, and whose prompt is one of ours. */
const PROMPTS: Readonly<Record<string, Runtime>> = {
  bash: 'bash',
  sh: 'bash',
  dash: 'bash',
  zsh: 'bash',
  python: 'python',
  python3: 'python',
  ipython: 'python',
  node: 'node',
}

/** Options with which they still ask. */
const ASKING: ReadonlySet<string> = new Set(['-i', '-l', '-il', '-li', '--login', '--interactive', '-q', '-u'])

/** The runtime of the prompt that these words would open on a terminal. A program has none of its own in a sandbox. */
export function promptOf(words: readonly string[]): Runtime | undefined {
  const [program = '', ...args] = words
  return args.every((word) => ASKING.has(word)) ? PROMPTS[basename(program)] : undefined
}

/** The prompt to open instead of a program: on a terminal, where that is what the words would do. */
export function promptFor(
  { terminal }: Context,
  words: readonly string[],
  options: TerminalOptions & RunOptions,
): Runtime | undefined {
  if (!process.stdin.isTTY || !terminal.isTty) return undefined
  const runtime = promptOf(words)
  const [program = ''] = words
  if (runtime === undefined) {
    if (options.interactive === true || options.tty === true) terminal.note(NO_TERMINAL)
    return undefined
  }
  if (options.workdir !== undefined || options.cpuTime !== undefined)
    throw new UsageError('A prompt takes neither --workdir nor --cpu-time.', `For a prompt: airlock ${runtime}`)
  terminal.note(`${program} has no terminal in a sandbox: this is the prompt of "airlock ${runtime}".`)
  return runtime
}

/** Of `-it`, as Docker has it: what can do without goes on. */
const NO_TERMINAL =
  'airlock: a program has no terminal in a sandbox, and goes on without. For a prompt: airlock bash, airlock python, or airlock node'

/** Programs that end at once, without a word, where nothing is piped to them. */
const READERS: ReadonlySet<string> = new Set(
  'awk bc cat cut dc fish grep head jq ksh less lua more perl psql ruby sed sort sqlite3 tail tee tr uniq wc xargs'.split(
    ' ',
  ),
)

/** What to say of a program that ended well and without a word, on a terminal. */
export function noInput(words: readonly string[]): string | undefined {
  const prompt = promptOf(words)
  const [program = ''] = words
  const name = basename(program)
  if (prompt !== undefined) return `${name} got no input and ended. For a prompt: airlock ${prompt}`
  if (words.length !== 1 || !READERS.has(name)) return undefined
  return `${name} got no input and ended: a terminal is not passed on. Pipe into it: echo text | airlock run -- ${name}`
}
