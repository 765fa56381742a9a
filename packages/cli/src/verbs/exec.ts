import type { Command } from 'commander'
import { attach, attachQuietly, exitCodeOf } from '../run/attach.ts'
import {
  addCommandOptions,
  toCommandLine,
  toCommandOptions,
  type RunOptions,
  waitingAirlock,
} from '../options/command-options.ts'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { Interrupts } from '../run/interrupts.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = RunOptions & JsonOption & { readonly detach?: boolean }

export function defineExec(command: Command, context: Context): void {
  addCommandOptions(withJson(command))
    .option('-d, --detach', 'print the id of the command and leave it running')
    .argument('<sandbox>', 'its id or name')
    .argument('<command...>', 'the program and its arguments')
    .addHelpText('after', '\nExample: airlock exec scratch -- ls -l')
    .action(async (target: string, words: readonly string[], options: Options) => {
      context.exitCode = await exec(context, { target, words }, options)
    })
}

async function exec(
  context: Context,
  what: { readonly target: string; readonly words: readonly string[] },
  options: Options,
): Promise<number> {
  const { terminal } = context
  const sandbox = await findSandbox(waitingAirlock(options), what.target)
  const line = toCommandLine(what.words, options)
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
