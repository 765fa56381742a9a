import { type AlertCounts, alertLevel, watched } from '@airlock/contract'
import { sql } from 'kysely'
import { z } from 'zod'
import { LIVING_STATES } from './sandboxes.ts'
import type { Queries } from './engine/store.ts'

/** At most one is open for a sandbox, a resource and a level. */
const storedAlert = z
  .object({
    id: z.string(),
    tenant: z.string(),
    agent: z.string(),
    sandbox: z.string(),
    resource: watched,
    level: alertLevel,
    /** What it used of its limit when the alert was raised. */
    permille: z.int(),
    /** In percent. */
    threshold: z.int(),
    raisedAt: z.int(),
    clearedAt: z.int().nullable(),
  })
  .transform(({ permille, ...alert }) => ({ ...alert, percent: permille / 10 }))
export type StoredAlert = z.infer<typeof storedAlert>

const NONE: AlertCounts = { warning: 0, critical: 0 }

/** What was critical and eased has a row of its own from the same moment, which is no alert more. */
const IS_RAISED = sql<boolean>`not (alerts.level = 'warning' and exists (
  select 1 from alerts as was where was.sandbox = alerts.sandbox and was.resource = alerts.resource
  and was.raised_at = alerts.raised_at and was.level = 'critical'))`

const counted = z.object({ level: alertLevel, count: z.coerce.number().pipe(z.int()) })
const countedOf = counted.extend({ sandbox: z.string() })

/** Ids are new, so one that is there came from us, by a try whose answer was lost. */
export async function insertAlert(db: Queries, { percent, ...alert }: StoredAlert): Promise<void> {
  await db
    .insertInto('alerts')
    .values({ ...alert, permille: Math.round(percent * 10) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export async function clearAlert(db: Queries, id: string, at: number): Promise<void> {
  await db.updateTable('alerts').set({ clearedAt: at }).where('id', '=', id).where('clearedAt', 'is', null).execute()
}

/** Those of the sandboxes of a node, also of sandboxes that have ended. */
export async function listOpenAlerts(db: Queries, node: string): Promise<readonly StoredAlert[]> {
  const rows = await db
    .selectFrom('alerts')
    .innerJoin('sandboxes', 'sandboxes.id', 'alerts.sandbox')
    .selectAll('alerts')
    .where('alerts.clearedAt', 'is', null)
    .where('sandboxes.node', '=', node)
    .orderBy('alerts.id')
    .execute()
  return z.array(storedAlert).parse(rows)
}

/** How many each living sandbox of a node had since its start; those without any are left out. */
export async function countAlertsOfLiving(db: Queries, node: string): Promise<ReadonlyMap<string, AlertCounts>> {
  const rows = await db
    .selectFrom('alerts')
    .innerJoin('sandboxes', 'sandboxes.id', 'alerts.sandbox')
    .select(({ fn }) => ['alerts.sandbox', 'alerts.level', fn.countAll().as('count')])
    .where('sandboxes.node', '=', node)
    .where('sandboxes.state', 'in', LIVING_STATES)
    .where(IS_RAISED)
    .groupBy(['alerts.sandbox', 'alerts.level'])
    .execute()
  const counts = new Map<string, AlertCounts>()
  for (const { sandbox, level, count } of z.array(countedOf).parse(rows))
    counts.set(sandbox, { ...(counts.get(sandbox) ?? NONE), [level]: count })
  return counts
}

/** How many were raised for an agent from a moment on, or with null for all of its tenant. */
export async function countAlerts(
  db: Queries,
  of: { readonly tenant: string; readonly agent: string | null; readonly since: number },
): Promise<AlertCounts> {
  let query = db
    .selectFrom('alerts')
    .select(({ fn }) => ['level', fn.countAll().as('count')])
    .where('tenant', '=', of.tenant)
    .where('raisedAt', '>=', of.since)
    .where(IS_RAISED)
    .groupBy('level')
  if (of.agent !== null) query = query.where('agent', '=', of.agent)
  const rows = z.array(counted).parse(await query.execute())
  return { ...NONE, ...Object.fromEntries(rows.map(({ level, count }) => [level, count])) }
}

/** How many were raised for a sandbox since its start. */
export async function countAlertsOf(db: Queries, sandbox: string): Promise<AlertCounts> {
  const rows = await db
    .selectFrom('alerts')
    .select(({ fn }) => ['level', fn.countAll().as('count')])
    .where('sandbox', '=', sandbox)
    .where(IS_RAISED)
    .groupBy('level')
    .execute()
  return {
    ...NONE,
    ...Object.fromEntries(
      z
        .array(counted)
        .parse(rows)
        .map(({ level, count }) => [level, count]),
    ),
  }
}

/** Forgets those that were cleared before a moment. */
export async function pruneAlerts(db: Queries, before: number): Promise<void> {
  await db.deleteFrom('alerts').where('raisedAt', '<', before).where('clearedAt', '<', before).execute()
}
