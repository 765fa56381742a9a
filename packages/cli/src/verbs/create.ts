import { Airlock, type Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { collectPairs } from '../text/pairs.ts'
import { withProgress } from '../text/progress.ts'
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../options/sandbox-options.ts'
import { formatBytes } from '../text/units.ts'
import { quote } from '../text/quote.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = SandboxOptions & JsonOption & { readonly env?: Record<string, string>; readonly reuse?: boolean }

export function defineCreate(command: Command, context: Context): void {
  addSandboxOptions(withJson(command))
    .option('--env <key=value>', 'an environment variable of every command; may be given several times', collectPairs)
    .option('--reuse', 'answer the living sandbox of that name, if there is one')
    .argument('[name]')
    .usage('[options]')
    .action(async (name: string | undefined, options: Options) => {
      if (name !== undefined)
        throw new UsageError('The name is an option.', `Use: airlock create --name ${quote(name)}`)
      const { terminal } = context
      const sandbox = await withProgress(
        terminal,
        () => 'Starting a sandbox',
        async () => create(context, options),
      )
      if (options.json === true) return terminal.printJson({ ...sandbox.data, ...sandbox.given })
      await terminal.print(sandbox.id)
      for (const line of notesOf(sandbox)) terminal.note(line)
    })
}

async function create(context: Context, options: Options): Promise<Sandbox> {
  const { sandboxes } = new Airlock()
  const { name, ...rest } = toCreateOptions(options)
  const body = { ...rest, ...(options.env === undefined ? {} : { env: options.env }) }
  if (options.reuse === true && name !== undefined) return sandboxes.getOrCreate(name, body)
  return sandboxes.create(name === undefined ? body : { ...body, name })
}

/** For who looks on: whose it is, what it takes of the budget, and what it sees. The id alone is the answer. */
function notesOf({ data, given }: Sandbox): readonly string[] {
  if (!given) return []
  const { reserved, limits } = given.reserved.budget
  const { memoryBytes, diskBytes, cpus } = given.reserved.limits
  const held = `${reserved.sandboxes} of ${limits.sandboxes} sandboxes, ${formatBytes(reserved.memoryBytes)} of ${formatBytes(limits.memoryBytes)} memory, ${formatBytes(reserved.diskBytes)} of ${formatBytes(limits.diskBytes)} disk, ${reserved.cpus} of ${limits.cpus} cpu`
  return [
    `agent ${data.agent}, generation ${given.agentSnapshot.generation}`,
    `reserved ${formatBytes(memoryBytes)} memory, ${formatBytes(diskBytes)} disk, ${cpus} cpu; its agent now holds ${held}`,
    ...data.mounts.map(({ target, path, mode }) => `mount ${target} is ${path} (${mode})`),
  ]
}
