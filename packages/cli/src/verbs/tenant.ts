import { Airlock } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { listPages } from '../list-pages.ts'
import { renderTable } from '../text/table.ts'
import { withJson, type JsonOption } from '../verb.ts'

export function defineTenant(tenant: Command, context: Context): void {
  addCreate(tenant, context)
  addLs(tenant, context)
}

function addCreate(tenant: Command, context: Context): void {
  withJson(tenant.command('create').description('Make a tenant, with an approved agent "default".'))
    .argument('<id>', 'its name')
    .addHelpText('after', '\nIts first key: airlock keys create --tenant <id> --role admin <name>')
    .action(async (id: string, options: JsonOption) => {
      const made = await new Airlock({ role: 'admin' }).tenants.create(id)
      if (options.json === true) return context.terminal.printJson(made)
      await context.terminal.print(made.id)
    })
}

function addLs(tenant: Command, context: Context): void {
  withJson(tenant.command('ls').description('List the tenants that you may see.')).action(
    async (options: JsonOption) => {
      const { terminal } = context
      const { tenants } = new Airlock({ role: 'admin' })
      const found = await listPages((cursor) => tenants.list({ cursor }))
      if (options.json === true) return terminal.printJson(found)
      const rows = found.map((one) => [one.id, one.createdAt])
      await terminal.print(renderTable(terminal, ['TENANT', 'CREATED'], rows))
    },
  )
}
