import { Airlock } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { parseDuration } from '../text/units.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineExtend(command: Command, context: Context): void {
  withJson(command)
    .argument('<sandbox>', 'its id or name')
    .argument('[duration]', 'from now on, like 30m (default: its own TTL)', parseDuration)
    .action(async (target: string, ttlMs: number | undefined, options: JsonOption) => {
      const { terminal } = context
      const sandbox = await findSandbox(new Airlock(), target)
      await sandbox.extend(ttlMs)
      if (options.json === true) return terminal.printJson(sandbox.data)
      await terminal.print(`${sandbox.id} expires at ${sandbox.data.expiresAt}`)
    })
}
