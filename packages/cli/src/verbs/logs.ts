import { Airlock, type RunningCommand } from '@airlock/sdk'
import type { Command } from 'commander'
import { OutputPrinter } from '../run/attach.ts'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = JsonOption & { readonly follow?: boolean; readonly full?: boolean }

export function defineLogs(command: Command, context: Context): void {
  withJson(command)
    .argument('<sandbox>', 'its id or name')
    .argument('<command>', 'the id of the command; see "airlock inspect"')
    .option('-f, --follow', 'go on until it ends; with --json, one event a line')
    .option('--full', 'all that it said when that went over its cap, both streams as they came, to stdout')
    .action(async (target: string, id: string, options: Options) => {
      const sandbox = await findSandbox(new Airlock(), target)
      const command = sandbox.command(id)
      if (options.full === true) await printFull(context, command)
      else if (options.json === true) await printAsJson(context, command, options)
      else await print(context, command, options)
    })
}

async function printAsJson({ terminal }: Context, command: RunningCommand, options: Options): Promise<void> {
  if (options.follow !== true) return terminal.printJson(await command.output())
  for await (const event of command) await terminal.printJson(event, 'line')
}

async function printFull({ terminal }: Context, command: RunningCommand): Promise<void> {
  const printer = new OutputPrinter(terminal)
  for await (const bytes of command.fullOutput()) await printer.write('stdout', Buffer.from(bytes))
  await printer.finish()
}

async function print({ terminal }: Context, command: RunningCommand, options: Options): Promise<void> {
  const printer = new OutputPrinter(terminal)
  const { state } = await command.get()
  if (options.follow === true || state !== 'running') for await (const event of command) await printer.print(event)
  else {
    const { stdout, stderr } = await command.output()
    await printer.write('stdout', Buffer.from(stdout))
    await printer.write('stderr', Buffer.from(stderr))
  }
  await printer.finish()
}
