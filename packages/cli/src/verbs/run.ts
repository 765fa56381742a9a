import type { Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import { attach, attachQuietly, exitCodeOf } from '../run/attach.ts'
import { addFileOptions, type CodeOptions } from '../options/code-options.ts'
import {
  addCommandOptions,
  toCommandLine,
  toCommandOptions,
  type RunOptions,
  waitingAirlock,
} from '../options/command-options.ts'
import type { Context } from '../context.ts'
import { copyIn } from '../run/copy-in.ts'
import { Interrupts } from '../run/interrupts.ts'
import { withProgress } from '../text/progress.ts'
import { runFile, runtimeOf } from '../run/run-file.ts'
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../options/sandbox-options.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = SandboxOptions & RunOptions & JsonOption & Pick<CodeOptions, 'with' | 'stdin'>

export function defineRun(command: Command, context: Context): void {
  const verb = withJson(command)
  addFileOptions(addCommandOptions(addSandboxOptions(verb, 'base, or data for a .py file')))
    .argument('<command...>', 'a file .py, .js, .ts or .sh of this machine, or a program of the sandbox; and arguments')
    .addHelpText('after', HELP)
    .action(async (words: readonly string[], options: Options) => {
      const [path = '', ...args] = words
      const runtime = isExplicit(context, words) || options.shell === true ? undefined : runtimeOf(path)
      context.exitCode = await (runtime
        ? runFile(context, { path, args, runtime }, options)
        : run(context, words, options))
    })
}

const HELP = `
A file is run by its interpreter as in a notebook: tables are printed, pictures are saved in this directory, and the exit
code is 1 when it failed. What comes after -- is a program of the sandbox, and its exit code is passed on.

Examples: airlock run --with sales.csv sales.py
          airlock run -- python3 -c 'print(6*7)'`

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
    if (options.json !== true) return exitCodeOf(await attach(terminal, attachment))
    const result = await attachQuietly(attachment)
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
