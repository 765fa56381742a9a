import { Airlock, type Sandbox } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { reportFailure } from '../failure.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { withProgress } from '../text/progress.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function definePause(command: Command, context: Context): void {
  define(command, context, { doing: 'Pausing', change: (sandbox) => sandbox.pause() })
}

export function defineResume(command: Command, context: Context): void {
  define(command, context, { doing: 'Resuming', change: (sandbox) => sandbox.resume() })
}

interface Change {
  readonly doing: string
  readonly change: (sandbox: Sandbox) => Promise<Sandbox>
}

function define(command: Command, context: Context, { doing, change }: Change): void {
  withJson(command)
    .argument('<sandbox...>', 'ids or names')
    .action(async (targets: readonly string[], options: JsonOption) => {
      const { terminal } = context
      const airlock = new Airlock()
      const changed: Sandbox['data'][] = []
      for (const target of targets) {
        try {
          const work = async () => change(await findSandbox(airlock, target))
          const sandbox = await withProgress(terminal, () => `${doing} ${target}`, work)
          changed.push(sandbox.data)
          if (options.json !== true) await terminal.print(sandbox.id)
        } catch (error) {
          // The others are changed all the same.
          context.exitCode = reportFailure(terminal, error)
        }
      }
      if (options.json === true) await terminal.printJson(changed)
    })
}
