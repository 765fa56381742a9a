import { releaseExpired } from '../store/budgets.ts'
import type { Context } from './context.ts'

/**
 * Frees what was reserved on nodes that died while they made a sandbox, so that budgets are not held for ever: nobody can use the
 * permit any more. A node that lives on, and is only slow, finds that it cannot commit, and undoes. What this node reserved
 * ends with its sandboxes.
 */
export async function freeExpired(context: Pick<Context, 'store' | 'node' | 'clock' | 'log'>): Promise<void> {
  const { store, node, clock, log } = context
  const of = { node: node.id, now: clock.now() }
  for (const freed of await store.transaction((db) => releaseExpired(db, of)))
    log.warn('a reservation expired before it was committed', freed)
}
