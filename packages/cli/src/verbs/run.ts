import type { Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import { attach, attachQuietly, exitCodeOf } from '../run/attach.ts'
import { addFileOptions, addOutOption, type CodeOptions, type OutOptions } from '../options/code-options.ts'
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
import { bringBack } from '../run/bring-back.ts'
import { copyAllIn } from '../run/copy-files.ts'
import { Interrupts } from '../run/interrupts.ts'
import { openPrompt } from '../run/open-prompt.ts'
import { promptFor } from '../run/prompt-of.ts'
import { withProgress } from '../text/progress.ts'
import { runFile, runtimeOf } from '../run/run-file.ts'
import { toBringBack } from '../run/bring-back-options.ts'
import { keepsWork } from '../run/keep-work.ts'
import { inThrowAway } from '../run/throw-away.ts'
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../options/sandbox-options.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = SandboxOptions &
  RunOptions &
  TerminalOptions &
  JsonOption &
  Pick<CodeOptions, 'with' | 'all' | 'stdin'> &
  OutOptions

export function defineRun(command: Command, context: Context): void {
  const verb = withJson(addTerminalOptions(addCommandOptions(addOutOption(addFileOptions(command)))))
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

Files that it leaves in /workspace are gone with its sandbox; --out PATH brings them back, also when it failed. With
--worktree it runs in a copy of a git repository; if it changed something there, the sandbox is kept for you to export it.

Examples: airlock run --with sales.csv --out report.csv sales.py
          airlock run --with . --out dist -- make
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
  // Work in a worktree may have to outlive the run.
  const ephemeral = options.worktree === undefined
  const create = async (): Promise<Sandbox> => sandboxes.create({ ...toCreateOptions(options), ephemeral })
  const sandbox = await withProgress(terminal, () => 'Starting a sandbox', create)
  try {
    interrupts.throwIfAsked()
    const watching = { terminal, json: options.json === true }
    const { files } = sandbox
    await copyAllIn(watching, files, { paths: options.with ?? [], all: options.all === true })
    const line = toCommandLine(words, options)
    const inTree = options.worktree === undefined ? {} : { cwd: '/workspace/repo' }
    const attachment = { sandbox, line, options: { ...inTree, ...toCommandOptions(options) }, interrupts }
    const back = { files, ...toBringBack(options, sandbox.id), command: 'airlock run' }
    return await bringBack(watching, back, async () => {
      if (!watching.json) return exitCodeOf(await inThrowAway(async () => attach(terminal, attachment)))
      const result = await inThrowAway(async () => attachQuietly(attachment))
      await terminal.printJson(result)
      return exitCodeOf(result)
    })
  } finally {
    if (!(await keepsWork(terminal, sandbox)))
      await withProgress(
        terminal,
        () => `Ending ${sandbox.id}`,
        async () => sandbox.terminate({ force: true }),
      )
  }
}
