import { Airlock, type Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { reportFailure } from '../failure.ts'
import { withProgress } from '../text/progress.ts'
import { withJson, type JsonOption } from '../verb.ts'

type Options = JsonOption & { readonly force?: boolean }

export function defineTerminate(command: Command, context: Context): void {
  withJson(command)
    .argument('<sandbox...>', 'ids or names')
    .option('-f, --force', 'kill at once')
    .action(async (targets: readonly string[], options: Options) => {
      const { terminal } = context
      const airlock = new Airlock()
      const ended: Sandbox['data'][] = []
      for (const target of targets) {
        try {
          const sandbox = await terminate(context, airlock, { target, force: options.force ?? false })
          ended.push(sandbox.data)
          if (options.json !== true) await terminal.print(sandbox.id)
        } catch (error) {
          // The others are ended all the same.
          context.exitCode = reportFailure(terminal, error)
        }
      }
      if (options.json === true) await terminal.printJson(ended)
    })
}

async function terminate(
  context: Context,
  airlock: Airlock,
  what: { readonly target: string; readonly force: boolean },
): Promise<Sandbox> {
  const sandbox = await findSandbox(airlock, what.target)
  const end = async (): Promise<Sandbox> => sandbox.terminate({ force: what.force })
  return withProgress(context.terminal, () => `Ending ${what.target}`, end)
}
