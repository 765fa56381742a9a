import type { Command } from 'commander'
import { attach, attachQuietly, exitCodeOf } from '../run/attach.ts'
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
import { throwOnLine } from '../run/check-words.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { Interrupts } from '../run/interrupts.ts'
import { openPrompt } from '../run/open-prompt.ts'
import { promptFor } from '../run/prompt-of.ts'
import { quote } from '../text/quote.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = RunOptions & TerminalOptions & JsonOption & { readonly detach?: boolean }

interface Asked {
  readonly target: string
  readonly words: readonly string[]
}

export function defineExec(command: Command, context: Context): void {
  addTerminalOptions(addCommandOptions(withJson(command)))
    .option('-d, --detach', 'print the id of the command and leave it running')
    .argument('<sandbox>', 'its id or name')
    .argument('[command...]', 'the program and its arguments')
    .usage('[options] <sandbox> <program> [arguments...]')
    .addHelpText('after', '\nExample: airlock exec scratch -- ls -l')
    .action(async (target: string, words: readonly string[], options: Options) => {
      if (words.length === 0)
        throw new UsageError('There is nothing to run.', `For example: airlock exec ${quote(target)} -- ls -l`)
      const asked = { target, words: words[0] === '--' ? words.slice(1) : words }
      if (words[0] !== '--') throwOnOption(command, asked)
      const isQuiet = options.json === true || options.detach === true || options.shell === true
      const runtime = isQuiet ? undefined : promptFor(context, asked.words, options)
      context.exitCode = await (runtime
        ? openPrompt(context, { runtime, options: { ...options, sandbox: target } })
        : exec(context, asked, options))
    })
}

/** What begins with a dash is no program: an option of ours that comes too late, or the name of the sandbox is missing. */
function throwOnOption(command: Command, { target, words }: Asked): void {
  const [word = '', ...rest] = words
  if (!word.startsWith('-')) return
  const isOurs = /^-[itd]+$/.test(word) || command.options.some(({ long }) => long === word.split('=')[0])
  if (!isOurs)
    throw new UsageError(
      `${word} is no program: is ${target} the name of a sandbox?`,
      `A sandbox comes first: airlock exec SANDBOX ${[target, word, ...rest].map(quote).join(' ')}. To see them: airlock ls`,
    )
  throw new UsageError(
    `${word} comes after the name of the sandbox, where the program is.`,
    `Options come first: airlock exec ${[word, target, ...rest].map(quote).join(' ')}`,
  )
}

async function exec(context: Context, { target, words }: Asked, options: Options): Promise<number> {
  const { terminal } = context
  if (options.shell !== true) throwOnLine(words[0] ?? '', `airlock exec --shell ${quote(target)}`)
  const sandbox = await findSandbox(waitingAirlock(options), target)
  const line = toCommandLine(words, options)
  if (options.detach === true) {
    const { id } = await sandbox.start(line, toCommandOptions(options))
    await (options.json === true ? terminal.printJson({ id, sandbox: sandbox.id }) : terminal.print(id))
    return 0
  }
  using interrupts = new Interrupts()
  const attachment = { sandbox, line, options: toCommandOptions(options), interrupts }
  if (options.json !== true) return exitCodeOf(await attach(terminal, attachment))
  const result = await attachQuietly(attachment)
  await terminal.printJson(result)
  return exitCodeOf(result)
}
