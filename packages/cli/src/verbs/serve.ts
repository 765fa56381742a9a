import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { forwarded } from '../verb.ts'

export function defineServe(command: Command, context: Context): void {
  forwarded(command).action(async (argv: readonly string[]) => {
    const { serve } = await import('@airlock/supervisor')
    context.exitCode = await serve(argv)
  })
}
