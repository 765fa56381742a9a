import { Airlock } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { findSandbox } from '../run/find-sandbox.ts'
import { renderFacts } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineConnect(command: Command, context: Context): void {
  withJson(command)
    .argument('<sandbox>', 'its id or name')
    .option('--revoke', 'tokens that were given out before open nothing from now on')
    .action(async (target: string, options: JsonOption & { readonly revoke?: boolean }) => {
      const { terminal } = context
      const sandbox = await findSandbox(new Airlock(), target)
      const connection = await sandbox.connect({ revoke: options.revoke === true })
      if (options.json === true) return terminal.printJson(connection)
      const { socket, tokenFile, expiresAt, generation, scopes, env } = connection
      await terminal.print(
        renderFacts(terminal, [
          ['socket', socket],
          ['token file', tokenFile],
          ['generation', String(generation)],
          ['scopes', scopes.join(', ')],
          ['expires', `${expiresAt}, unless the sandbox renews it, which it does`],
          ...Object.entries(env).map(([name, value]) => ['variable', `${name}=${value}`] as const),
        ]),
      )
    })
}
