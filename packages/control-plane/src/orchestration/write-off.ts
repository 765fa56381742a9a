import { listOverdue, type StoredSandbox } from '../store/sandboxes.ts'
import type { Context } from './context.ts'
import { writeEnd } from './terminate.ts'

/** A node that lives ends its sandboxes itself, long before. Clocks of nodes may differ by less. */
const GRACE_MS = 5 * 60_000
const BATCH = 100

const NODE_LOST = { code: 'node_lost', message: 'The node of the sandbox was not heard of before its time was over.' }

/**
 * Ends the rows of nodes that never came back, so that names and agents are not held for ever. A data plane ends every
 * sandbox at the time in its permit, so after that the row holds nothing. Should its node live after all, it removes
 * what it has without a living row.
 */
export async function writeOffOverdue(
  context: Pick<Context, 'store' | 'node' | 'clock' | 'audit' | 'log'>,
): Promise<void> {
  const { store, node, clock } = context
  const of = { node: node.id, endedBy: clock.now() - GRACE_MS, limit: BATCH }
  for (const row of await store.query((db) => listOverdue(db, of))) await writeOff(context, row)
}

/** Recorded here, for the chain of that node is out of reach: what became of the sandbox is not known. */
async function writeOff(
  { store, audit, log }: Pick<Context, 'store' | 'audit' | 'log'>,
  row: StoredSandbox,
): Promise<void> {
  const { id: sandbox, tenant, agent, node } = row
  const changes = { endedAt: row.endsAt, endReason: 'max_lifetime', error: NODE_LOST, recorded: true } as const
  try {
    await store.transaction(async (db) => writeEnd(db, row, { to: 'error', changes, usage: null }))
  } catch (error) {
    // Another node was faster, or its own is back.
    return log.warn('an overdue sandbox could not be written off', { sandbox, node, error })
  }
  const about = { point: 'sandbox.terminate', status: 'unknown', error: NODE_LOST, payload: { node } } as const
  audit.note({ tenant, agent, sandbox, actor: 'system', ...about })
}
