import type { Command } from 'commander'
import { fileURLToPath } from 'node:url'
import type { Context } from '../context.ts'
import { withJson, type JsonOption } from '../verb.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/airlock.js', import.meta.url))

export function defineService(service: Command, context: Context): void {
  service
    .command('install')
    .description('Start the server now and at every boot, by systemd; again after an upgrade. Needs root.')
    .option('--dry-run', 'print the units instead of writing them')
    .action(async ({ dryRun = false }: { readonly dryRun?: boolean }) => {
      const { installService } = await import('@airlock/supervisor')
      context.exitCode = await installService({ program: PROGRAM, dryRun })
    })
  service
    .command('uninstall')
    .description('End all sandboxes, stop the server and remove its units. State and evidence stay. Needs root.')
    .action(async () => {
      const { uninstallService } = await import('@airlock/supervisor')
      context.exitCode = await uninstallService()
    })
  withJson(service.command('status').description('Show whether it is installed and runs.')).action(
    async ({ json = false }: JsonOption) => {
      const { serviceStatus } = await import('@airlock/supervisor')
      context.exitCode = await serviceStatus(json)
    },
  )
}
