import type { FollowedCall } from '@airlock/contract'
import type { Registry } from '../sandboxes/registry.ts'
import type { Runs } from '../sandboxes/runs.ts'

interface Parts {
  readonly runs: Pick<Runs, 'run' | 'step'>
  readonly registry: Pick<Registry, 'link'>
}

/** Starts a command or a step, and answers how its output is read from the beginning. */
export async function startFollowed(
  { runs, registry }: Parts,
  call: FollowedCall,
): Promise<(signal: AbortSignal) => AsyncIterable<Buffer>> {
  const { id } =
    call.kind === 'step'
      ? await runs.step(call.sandbox, call.session, call.step)
      : await runs.run(call.sandbox, call.command)
  const { commands } = registry.link(call.sandbox)
  return (signal) => commands.output(id, { from: 0, signal })
}
