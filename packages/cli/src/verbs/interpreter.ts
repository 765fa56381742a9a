import type { Runtime } from '@airlock/sdk'
import type { Command } from 'commander'
import { addCodeOptions, toStepOptions, type CodeOptions } from '../options/code-options.ts'
import type { Context } from '../context.ts'
import { openPrompt } from '../run/open-prompt.ts'
import { readCodeFile, readStdin } from '../run/read-code.ts'
import { runCode } from '../run/run-code.ts'
import { quote } from '../text/quote.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'
import { withSession } from '../run/with-session.ts'

type Options = CodeOptions & JsonOption & { readonly code?: string }

export function defineInterpreter(runtime: Runtime): (command: Command, context: Context) => void {
  return (command, context) => {
    throwOnForeign(runtime, context.argv.slice(1))
    addCodeOptions(withJson(command))
      .option('-c, --code <code>', 'run this instead of a file')
      .argument('[file]', 'a program on this machine (default: a prompt, or what is piped in)')
      .argument('[arguments...]', 'its arguments')
      .passThroughOptions()
      .addHelpText('after', HELP)
      .action(async (file: string | undefined, args: readonly string[], options: Options) => {
        context.exitCode = await interpret(context, { runtime, file, args, options })
      })
  }
}

/** Options that people know from the program itself. */
const FOREIGN: Readonly<Record<Runtime, readonly [program: string, options: readonly string[]]>> = {
  python: ['python3', ['-m', '-V', '--version', '-i', '-u']],
  node: ['node', ['-e', '--eval', '-p', '--print', '-v', '--version']],
  bash: ['bash', ['-l', '-x', '-e', '--version']],
}

function throwOnForeign(runtime: Runtime, words: readonly string[]): void {
  const [program, options] = FOREIGN[runtime]
  const [first = '', ...rest] = words
  if (!options.includes(first)) return
  const files = first === '-m' ? '--with . ' : ''
  throw new UsageError(
    `${first} is an option of ${program}, and no option of ours.`,
    `Use: airlock run ${files}-- ${program} ${[first, ...rest].map(quote).join(' ')}`,
  )
}

const HELP = `
At the prompt: Ctrl-C interrupts what runs, or forgets the line; Ctrl-D leaves. Pictures are saved in this directory.
There code may take its time unless --timeout is given.
Exit codes: 1 when the code failed, else 0.`

/** One of these ends it: what was asked for is read before anything is started. */
interface Asked {
  readonly runtime: Runtime
  readonly file: string | undefined
  readonly args: readonly string[]
  readonly options: Options
}

async function interpret(context: Context, asked: Asked): Promise<number> {
  const { runtime, options } = asked
  const program = await readProgram(asked)
  if (!program) return openPrompt(context, { runtime, options })
  const step = await toStepOptions(options)
  return withSession(context, { runtime, options, code: program.code }, async (session, interrupts) =>
    runCode(context.terminal, { ...program, session, interrupts, options: step, json: options.json === true }),
  )
}

interface ReadProgram {
  readonly code: string
  readonly argv: readonly string[]
}

/** Undefined for a prompt. */
async function readProgram({ file, args, options }: Asked): Promise<ReadProgram | undefined> {
  if (options.code !== undefined)
    return { code: options.code, argv: ['-c', ...(file === undefined ? [] : [file]), ...args] }
  if (file !== undefined && file !== '-') return { code: await readCodeFile(file), argv: [file, ...args] }
  if (process.stdin.isTTY) return undefined
  return { code: await readStdin('code'), argv: ['-', ...args] }
}
