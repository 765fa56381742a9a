import { Airlock, type Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { collectPairs } from '../pairs.ts'
import { withProgress } from '../progress.ts'
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../sandbox-options.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = SandboxOptions & JsonOption & { readonly env?: Record<string, string>; readonly reuse?: boolean }

export function defineCreate(command: Command, context: Context): void {
  addSandboxOptions(withJson(command))
    .option('--env <key=value>', 'an environment variable of every command; may be given several times', collectPairs)
    .option('--reuse', 'answer the living sandbox of that name, if there is one')
    .action(async (options: Options) => {
      const { terminal } = context
      const sandbox = await withProgress(
        terminal,
        () => 'Starting a sandbox',
        async () => create(context, options),
      )
      await (options.json === true ? terminal.printJson(sandbox.data) : terminal.print(sandbox.id))
    })
}

async function create(context: Context, options: Options): Promise<Sandbox> {
  const { sandboxes } = new Airlock()
  const { name, ...rest } = toCreateOptions(options)
  const body = { ...rest, ...(options.env === undefined ? {} : { env: options.env }) }
  if (options.reuse === true && name !== undefined) return sandboxes.getOrCreate(name, body)
  return sandboxes.create(name === undefined ? body : { ...body, name })
}
