import type { Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import { attach, attachQuietly, exitCodeOf } from '../run/attach.ts'
import { addFileOptions, type CodeOptions } from '../options/code-options.ts'
import {
  addCommandOptions,
  addTerminalOptions,
  toCommandLine,
  toCommandOptions,
  type RunOptions,
  type TerminalOptions,
  waitingAirlock,
} from '../options/command-options.ts'
import type { Context } from '../context.ts'
import { checkProgram, throwOnLine } from '../run/check-words.ts'
import { copyIn } from '../run/copy-in.ts'
import { Interrupts } from '../run/interrupts.ts'
import { openPrompt } from '../run/open-prompt.ts'
import { promptFor } from '../run/prompt-of.ts'
import { withProgress } from '../text/progress.ts'
import { runFile, runtimeOf } from '../run/run-file.ts'
import { inThrowAway } from '../run/throw-away.ts'
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../options/sandbox-options.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = SandboxOptions & RunOptions & TerminalOptions & JsonOption & Pick<CodeOptions, 'with' | 'stdin'>

export function defineRun(command: Command, context: Context): void {
  const verb = withJson(addTerminalOptions(addCommandOptions(addFileOptions(command))))
  addSandboxOptions(verb, 'base, or data for what imports from it')
    .usage('[options] <file or program> [arguments...]')
    .argument('[command...]', 'a file .py, .js, .ts or .sh of this machine, or a program of the sandbox; and arguments')
    .addHelpText('after', HELP)
    .action(async (words: readonly string[], options: Options) => {
      if (words.length === 0)
        throw new UsageError('There is nothing to run.', 'For example: airlock run script.py, or: airlock run -- ls -l')
      const begin = options.shell === true ? run : start
      context.exitCode = await begin(context, words, options)
    })
}

const HELP = `
A file is run by its interpreter as in a notebook: tables are printed, pictures are saved in this directory, and the exit
code is 1 when it failed. What comes after -- is a program of the sandbox, and its exit code is passed on.

Examples: airlock run --with sales.csv sales.py
          airlock run -- python3 -c 'print(6*7)'`

/** What the words mean: a prompt, a file of this machine, or a program of the sandbox. */
async function start(context: Context, words: readonly string[], options: Options): Promise<number> {
  const [path = '', ...args] = words
  throwOnLine(path, 'airlock run --shell')
  const prompt = options.json === true ? undefined : promptFor(context, words, options)
  if (prompt) return openPrompt(context, { runtime: prompt, options: { template: 'base', ...options } })
  if (isExplicit(context, words)) return run(context, words, options)
  const runtime = runtimeOf(path)
  if (runtime) return runFile(context, { path, args, runtime }, options)
  checkProgram(path, options)
  return run(context, words, options)
}

/** The words came after `--`, which commander does not tell. */
function isExplicit({ argv }: Context, words: readonly string[]): boolean {
  return argv.at(-words.length - 1) === '--'
}

async function run(context: Context, words: readonly string[], options: Options): Promise<number> {
  const { terminal } = context
  const { sandboxes } = waitingAirlock(options)
  using interrupts = new Interrupts()
  const create = async (): Promise<Sandbox> => sandboxes.create(toCreateOptions(options))
  const sandbox = await withProgress(terminal, () => 'Starting a sandbox', create)
  try {
    interrupts.throwIfAsked()
    const tally = { files: 0, bytes: 0, skipped: [] }
    for (const from of options.with ?? []) await copyIn(sandbox.files, { from, to: '/workspace/' }, tally)
    const line = toCommandLine(words, options)
    const attachment = { sandbox, line, options: toCommandOptions(options), interrupts }
    if (options.json !== true) return exitCodeOf(await inThrowAway(async () => attach(terminal, attachment)))
    const result = await inThrowAway(async () => attachQuietly(attachment))
    await terminal.printJson(result)
    return exitCodeOf(result)
  } finally {
    await withProgress(
      terminal,
      () => `Ending ${sandbox.id}`,
      async () => sandbox.terminate({ force: true }),
    )
  }
}
