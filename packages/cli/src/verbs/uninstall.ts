import type { Command } from 'commander'
import type { Context } from '../context.ts'

export function defineUninstall(command: Command, context: Context): void {
  command.action(async () => {
    const { uninstall } = await import('@airlock/supervisor')
    context.exitCode = uninstall()
  })
}
