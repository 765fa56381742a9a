import { isAirlockError } from '@airlock/contract'
import type { Context } from '../app/context.ts'
import type { Lifecycle } from '../app/lifecycle-parts.ts'
import type { AuditHeads } from '../evidence/audit-heads.ts'
import { LostNodes } from '../nodes/lost-nodes.ts'
import { billLiving } from '../spend/billing.ts'
import type { SweepRow } from './sweep.ts'

/** Everything that the control plane does by the clock. */
export function sweepRows(context: Context, parts: Lifecycle & { readonly heads: AuditHeads }): readonly SweepRow[] {
  const { readiness } = context
  const lostNodes = new LostNodes(context, parts.receipts)
  /** For the node that has the sandboxes, and for no other. */
  const own = () => readiness.isNodeHeld
  return [
    { name: 'kills', everyRounds: 1, run: () => parts.killswitch.look() },
    { name: 'sandboxes', everyRounds: 1, when: own, run: () => lookAtSandboxes(context, parts) },
    { name: 'agents', everyRounds: 1, when: own, run: () => parts.agentEnds.look() },
    { name: 'grants', everyRounds: 1, when: own, run: () => parts.grantEnds.look() },
    { name: 'doors', everyRounds: 1, when: own, run: () => parts.connections.look() },
    { name: 'model calls', everyRounds: 1, when: own, run: () => parts.modelCalls.closeLost(parts.doorCalls.seen) },
    { name: 'jobs', everyRounds: 1, when: own, run: () => parts.jobRunner.look() },
    { name: 'old jobs', everyRounds: 60, when: own, run: () => parts.jobRunner.prune() },
    { name: 'artifacts', everyRounds: 5, when: own, run: () => parts.artifactKeeper.look() },
    { name: 'bytes of artifacts', everyRounds: 600, when: own, run: () => parts.artifactKeeper.prune() },
    { name: 'usage', everyRounds: 60, when: own, run: () => billLiving(context) },
    { name: 'budgets', everyRounds: 60, when: own, run: () => parts.budgetEnds.look() },
    { name: 'keys', everyRounds: 10, run: () => context.guardKeys.refresh() },
    { name: 'signs of life', everyRounds: 10, run: () => flushSeen(context) },
    { name: 'uses', everyRounds: 1, run: () => parts.activity.flush() },
    { name: 'uses of sessions', everyRounds: 1, run: () => parts.sessionActivity.flush() },
    { name: 'receipts', everyRounds: 5, run: () => parts.receipts.flush(() => parts.heads.keep()) },
    { name: 'owed records', everyRounds: 60, run: () => parts.receipts.payOwed() },
    { name: 'lost nodes', everyRounds: 10, run: () => lostNodes.look() },
    { name: 'approvals', everyRounds: 1, run: () => parts.approvals.look() },
    { name: 'images', everyRounds: 600, run: () => parts.templates.prune() },
  ]
}

/** Who was seen, and which keys were used. */
export async function flushSeen({ heartbeats, keyUses }: Pick<Context, 'heartbeats' | 'keyUses'>): Promise<void> {
  await heartbeats.flush()
  await keyUses.flush()
}

async function lookAtSandboxes({ readiness }: Context, { reconciler }: Lifecycle): Promise<void> {
  try {
    await reconciler.look()
  } catch (error) {
    if (isAirlockError(error) && error.code === 'data_plane_unavailable') readiness.nodeIsSilent()
    throw error
  }
}
