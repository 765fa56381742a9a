import { sleep, inParallel } from '@airlock/std'
import { listLiving } from '../store/sandboxes.ts'
import type { Context } from '../app/context.ts'
import type { Creation } from '../sandboxes/create.ts'
import type { Termination } from '../sandboxes/terminate.ts'

const AT_ONCE = 8
const PAUSE_MS = 100

/**
 * Ends every living sandbox of this node, also those whose creation is under way. Gives up when `signal` aborts: the next start
 * finds what is left. Preconditions: nothing new is admitted any more.
 */
export async function endAll(
  context: Pick<Context, 'store' | 'log' | 'node'>,
  parts: { readonly termination: Termination; readonly creation: Creation },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const living = await context.store.query((db) => listLiving(db, context.node.id))
    if (living.length === 0 && parts.creation.underWay === 0) return
    await inParallel(living, AT_ONCE, ({ id }) =>
      parts.termination
        .terminate(id, { reason: 'shutdown', actor: 'system' })
        .catch((error: unknown) => context.log.warn('a sandbox does not end', { sandbox: id, error })),
    )
    // Woken early only by the abort, which the loop sees.
    await sleep(PAUSE_MS, signal).catch(() => undefined)
  }
}
