import type { Context } from '../app/context.ts'
import { limitsOf } from '../spend/reserve.ts'
import type { Queries } from '../store/engine/store.ts'
import { leaseEnd, listCandidates, type QueueCandidate, takeFirstJob } from '../store/job-queues.ts'
import type { StoredJob } from '../store/jobs.ts'

/** A node that renews no lease for so long is judged by the others. */
export const LEASE_MS = 60_000
/** Queues that are looked at for one claim; those in front may all be at their limit. */
const CANDIDATES = 64

/**
 * Takes the job whose turn it is: of the tenant that runs least, then of its agent that runs least, whose budget has a sandbox
 * left. Transactions run one after another over all nodes, so no job is taken twice.
 */
export async function claimJob(context: Pick<Context, 'store' | 'node' | 'clock' | 'budgetDefaults'>) {
  const { store, node, clock } = context
  const now = clock.now()
  return store.transaction(async (db): Promise<StoredJob | undefined> => {
    for (const queue of await listCandidates(db, { now, limit: CANDIDATES })) {
      if (!(await mayRunMore(db, queue, context))) continue
      const leaseUntil = leaseEnd(store.now(clock), LEASE_MS)
      const job = await takeFirstJob(db, queue, { node: node.id, now, leaseUntil })
      if (job) return job
    }
    return undefined
  })
}

/** Whether budgets let another job of the agent run. Other sandboxes count when its own is made. */
async function mayRunMore(
  db: Queries,
  { tenant, agent, agentRunning, tenantRunning }: QueueCandidate,
  { budgetDefaults }: Pick<Context, 'budgetDefaults'>,
): Promise<boolean> {
  const ofTenant = await limitsOf(db, { tenant, agent: null }, budgetDefaults)
  if (tenantRunning >= ofTenant.sandboxes) return false
  const ofAgent = await limitsOf(db, { tenant, agent }, budgetDefaults)
  return agentRunning < ofAgent.sandboxes
}
