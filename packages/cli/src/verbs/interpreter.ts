import { DEFAULTS } from '@airlock/contract/defaults'
import type { Runtime } from '@airlock/sdk'
import type { Command } from 'commander'
import { addCodeOptions, toStepOptions, type CodeOptions } from '../options/code-options.ts'
import type { Context } from '../context.ts'
import { readCodeFile, readStdin } from '../run/read-code.ts'
import { Repl } from '../repl/repl.ts'
import { runCode } from '../run/run-code.ts'
import { withJson, type JsonOption } from '../verb.ts'
import { withSession } from '../run/with-session.ts'

type Options = CodeOptions & JsonOption & { readonly code?: string }

/** Whoever sits at a prompt ends it with Ctrl-C. */
const PROMPT_TIMEOUT_MS = DEFAULTS.commandTimeoutMs.max

export function defineInterpreter(runtime: Runtime): (command: Command, context: Context) => void {
  return (command, context) => {
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
  const { options } = asked
  const program = await readProgram(asked)
  const step = program ? await toStepOptions(options) : { timeoutMs: options.timeout ?? PROMPT_TIMEOUT_MS }
  return withSession(context, { runtime: asked.runtime, options, isLasting: !program }, async (session, interrupts) => {
    if (program)
      return runCode(context.terminal, { ...program, session, interrupts, options: step, json: options.json === true })
    context.terminal.note(`${session.data.runtimeVersion} in ${session.data.sandbox}. Ctrl-D leaves.`)
    return new Repl(context.terminal, session, { options: step, interrupts }).run()
  })
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
