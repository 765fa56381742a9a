import { type Expression, sql } from 'kysely'
import { z } from 'zod'
import type { Queries } from './engine/store.ts'
import { findJob, type StoredJob } from './jobs.ts'

export interface QueueKey {
  readonly tenant: string
  readonly agent: string
}

/** One more or one fewer waits; in the transaction that changes the job. */
export async function countInQueue(db: Queries, { tenant, agent }: QueueKey, by: 1 | -1): Promise<void> {
  await db
    .insertInto('jobQueues')
    .values({ tenant, agent, queued: Math.max(by, 0), claimed: 0, blockedUntil: 0 })
    .onConflict((conflict) =>
      conflict.columns(['tenant', 'agent']).doUpdateSet({ queued: sql<number>`job_queues.queued + ${sql.lit(by)}` }),
    )
    .execute()
}

export async function countQueued(db: Queries, tenant: string): Promise<number> {
  const row = await db
    .selectFrom('jobQueues')
    .select(({ fn }) => fn.sum('queued').as('queued'))
    .where('tenant', '=', tenant)
    .executeTakeFirst()
  return Number(row?.queued ?? 0)
}

const candidate = z.object({
  tenant: z.string(),
  agent: z.string(),
  /** Jobs of the agent, and of its tenant, that run on any node. */
  agentRunning: z.coerce.number(),
  tenantRunning: z.coerce.number(),
})
export type QueueCandidate = z.infer<typeof candidate>

/**
 * Whose turn it is: the tenant that runs least, then the one that was served longest ago; among its agents the same. Reads one row
 * per agent and one per running job, however many wait.
 */
export async function listCandidates(
  db: Queries,
  of: { readonly now: number; readonly limit: number },
): Promise<readonly QueueCandidate[]> {
  const { rows } = await sql`
    select q.tenant as "tenant", q.agent as "agent",
      coalesce(a.running, 0) as "agentRunning", coalesce(t.running, 0) as "tenantRunning"
    from job_queues q
    join (select tenant, max(claimed) as claimed from job_queues group by tenant) l on l.tenant = q.tenant
    left join (select tenant, agent, count(*) as running from jobs where state = 'running' group by tenant, agent) a
      on a.tenant = q.tenant and a.agent = q.agent
    left join (select tenant, count(*) as running from jobs where state = 'running' group by tenant) t
      on t.tenant = q.tenant
    where q.queued > 0 and q.blocked_until <= ${of.now}
    order by coalesce(t.running, 0), l.claimed, coalesce(a.running, 0), q.claimed, q.tenant, q.agent
    limit ${of.limit}`.execute(db)
  return z.array(candidate).parse(rows)
}

export interface Claim {
  readonly node: string
  readonly now: number
  /** By the clock of the store. */
  readonly leaseUntil: Expression<number>
}

/** Takes the first job of a queue that is due; undefined when none is. Precondition: in a transaction. */
export async function takeFirstJob(db: Queries, of: QueueKey, claim: Claim): Promise<StoredJob | undefined> {
  const first = await db
    .selectFrom('jobs')
    .select('id')
    .where('state', '=', 'queued')
    .where('tenant', '=', of.tenant)
    .where('agent', '=', of.agent)
    .where('notBefore', '<=', claim.now)
    .orderBy('notBefore')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  if (!first) return undefined
  await db
    .updateTable('jobs')
    .set({
      state: 'running',
      node: claim.node,
      leaseUntil: claim.leaseUntil,
      tries: sql<number>`tries + 1`,
      startedAt: claim.now,
      logStart: sql<number>`log_bytes`,
      sandbox: null,
      command: null,
    })
    .where('id', '=', first.id)
    .execute()
  await countInQueue(db, of, -1)
  await db
    .updateTable('jobQueues')
    .set({ claimed: sql<number>`(select max(claimed) + 1 from job_queues)` })
    .where('tenant', '=', of.tenant)
    .where('agent', '=', of.agent)
    .execute()
  return findJob(db, first.id)
}

/** Nothing of this queue is tried before. */
export async function blockQueue(db: Queries, { tenant, agent }: QueueKey, until: number): Promise<void> {
  await db
    .updateTable('jobQueues')
    .set({ blockedUntil: until })
    .where('tenant', '=', tenant)
    .where('agent', '=', agent)
    .execute()
}

/** When a lease that is taken or renewed now ends, by the clock of the store. */
export function leaseEnd(now: Expression<number>, leaseMs: number): Expression<number> {
  return sql<number>`${now} + ${sql.lit(leaseMs)}`
}
