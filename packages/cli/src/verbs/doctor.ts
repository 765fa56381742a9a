import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { forwarded } from '../verb.ts'

export function defineDoctor(command: Command, context: Context): void {
  forwarded(command).action(async (argv: readonly string[]) => {
    const { runDoctor } = await import('@airlock/data-plane/doctor')
    context.exitCode = await runDoctor(argv)
  })
}
