import { Airlock } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { renderFacts } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineWhoami(command: Command, context: Context): void {
  withJson(command).action(async (options: JsonOption) => {
    const { terminal } = context
    const airlock = new Airlock()
    const me = await airlock.whoami()
    if (options.json === true) return terminal.printJson({ ...me, url: airlock.url })
    const facts = [
      ['actor', me.actor],
      ['role', me.platform ? `${me.role}, platform` : me.role],
      ['tenant', me.tenant],
      ['agents', me.agents?.join(', ') ?? 'all'],
      ['server', airlock.url],
    ] as const
    await terminal.print(renderFacts(terminal, facts))
  })
}
