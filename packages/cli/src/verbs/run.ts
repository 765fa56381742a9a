import { Airlock, type Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import { attach, attachQuietly, exitCodeOf } from '../attach.ts'
import { addCommandOptions, toCommandLine, toCommandOptions, type RunOptions } from '../command-options.ts'
import type { Context } from '../context.ts'
import { Interrupts } from '../interrupts.ts'
import { withProgress } from '../progress.ts'
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../sandbox-options.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = SandboxOptions & RunOptions & JsonOption

export function defineRun(command: Command, context: Context): void {
  const verb = withJson(command)
  addCommandOptions(addSandboxOptions(verb))
    .argument('<command...>', 'the program and its arguments')
    .addHelpText('after', "\nExample: airlock run -- python3 -c 'print(6*7)'")
    .action(async (words: readonly string[], options: Options) => {
      context.exitCode = await run(context, words, options)
    })
}

async function run(context: Context, words: readonly string[], options: Options): Promise<number> {
  const { terminal } = context
  const { sandboxes } = new Airlock()
  using interrupts = new Interrupts()
  const create = async (): Promise<Sandbox> => sandboxes.create(toCreateOptions(options))
  const sandbox = await withProgress(terminal, () => 'Starting a sandbox', create)
  try {
    interrupts.throwIfAsked()
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
