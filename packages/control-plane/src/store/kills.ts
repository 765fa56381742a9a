import { killScope } from '@airlock/contract'
import { z } from 'zod'
import { flagColumn } from './engine/json-column.ts'
import { LIVING_STATES } from './sandboxes.ts'
import type { Queries } from './engine/store.ts'

export const storedKill = z.object({
  id: z.string(),
  scope: killScope,
  /** Empty for everything. */
  tenant: z.string(),
  /** The agent or the sandbox; empty for a tenant and for everything. */
  target: z.string(),
  reason: z.string(),
  actor: z.string(),
  at: z.int(),
  liftedAt: z.int().nullable(),
  liftedBy: z.string().nullable(),
})
export type StoredKill = z.infer<typeof storedKill>

const storedKilled = z.object({
  kill: z.string(),
  sandbox: z.string(),
  tenant: z.string(),
  node: z.string(),
  frozenMs: z.int().nullable(),
  goneMs: z.int().nullable(),
  processes: z.int().nullable(),
  verified: flagColumn,
})
export type StoredKilled = z.infer<typeof storedKilled>

/** The one that is on for this: the given one, or an earlier one. */
export async function insertKill(db: Queries, kill: StoredKill): Promise<StoredKill> {
  await db
    .insertInto('kills')
    .values(kill)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const rows = await db
    .selectFrom('kills')
    .selectAll()
    .where('scope', '=', kill.scope)
    .where('tenant', '=', kill.tenant)
    .where('target', '=', kill.target)
    .where('liftedAt', 'is', null)
    .execute()
  return storedKill.parse(rows[0])
}

export async function listKillsOn(db: Queries): Promise<readonly StoredKill[]> {
  const query = db.selectFrom('kills').selectAll().where('liftedAt', 'is', null).orderBy('id')
  return z.array(storedKill).parse(await query.execute())
}

/** Newest first: of a tenant and those over everything, or of all tenants. */
export async function listKills(
  db: Queries,
  of: { readonly tenant: string | null; readonly isLiftedToo: boolean; readonly limit: number },
): Promise<readonly StoredKill[]> {
  let query = db.selectFrom('kills').selectAll().orderBy('id', 'desc').limit(of.limit)
  if (of.tenant !== null) query = query.where('tenant', 'in', [of.tenant, ''])
  if (!of.isLiftedToo) query = query.where('liftedAt', 'is', null)
  return z.array(storedKill).parse(await query.execute())
}

/** The killswitch that is on for an agent, whatever its scope. For the transaction in which something is granted. */
export async function findKillOf(
  db: Queries,
  of: { readonly tenant: string; readonly agent: string },
): Promise<StoredKill | undefined> {
  const row = await db
    .selectFrom('kills')
    .selectAll()
    .where('liftedAt', 'is', null)
    .where((is) =>
      is.or([
        is('scope', '=', 'all'),
        is.and([is('tenant', '=', of.tenant), is('scope', '=', 'tenant')]),
        is.and([is('tenant', '=', of.tenant), is('scope', '=', 'agent'), is('target', '=', of.agent)]),
      ]),
    )
    .executeTakeFirst()
  return row && storedKill.parse(row)
}

/** Undefined when it was lifted before. */
export async function liftKill(
  db: Queries,
  of: Pick<StoredKill, 'scope' | 'tenant' | 'target'>,
  by: { readonly liftedAt: number; readonly liftedBy: string },
): Promise<StoredKill | undefined> {
  const row = await db
    .updateTable('kills')
    .set(by)
    .where('scope', '=', of.scope)
    .where('tenant', '=', of.tenant)
    .where('target', '=', of.target)
    .where('liftedAt', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row && storedKill.parse(row)
}

/** A sandbox that has ended does not come back: nothing is left for its killswitch to refuse. */
export async function liftKillsOfEnded(
  db: Queries,
  by: { readonly liftedAt: number; readonly liftedBy: string },
): Promise<void> {
  await db
    .updateTable('kills')
    .set(by)
    .where('scope', '=', 'sandbox')
    .where('liftedAt', 'is', null)
    .where((is) => {
      const living = is.selectFrom('sandboxes').select('id').where('state', 'in', LIVING_STATES)
      return is.not(is.exists(living.whereRef('sandboxes.id', '=', 'kills.target')))
    })
    .execute()
}

/** Which of these there are or were. */
export async function knownKills(db: Queries, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db.selectFrom('kills').select('id').where('id', 'in', ids).execute()
  return new Set(rows.map(({ id }) => id))
}

/** A later look knows more of what lives, and less of how it was found. */
export async function saveKilled(db: Queries, killed: readonly StoredKilled[]): Promise<void> {
  for (const { verified, ...one } of killed)
    await db
      .insertInto('killedSandboxes')
      .values({ ...one, verified: verified ? 1 : 0 })
      .onConflict((conflict) =>
        conflict.columns(['kill', 'sandbox']).doUpdateSet((is) => ({
          frozenMs: is.fn.coalesce('killedSandboxes.frozenMs', 'excluded.frozenMs'),
          processes: is.fn.coalesce('killedSandboxes.processes', 'excluded.processes'),
          goneMs: is.fn.coalesce('killedSandboxes.goneMs', 'excluded.goneMs'),
          verified: is.ref('excluded.verified'),
        })),
      )
      .execute()
}

export async function listKilled(db: Queries, kills: readonly string[]): Promise<readonly StoredKilled[]> {
  if (kills.length === 0) return []
  const query = db.selectFrom('killedSandboxes').selectAll().where('kill', 'in', kills).orderBy('sandbox')
  return z.array(storedKilled).parse(await query.execute())
}

const place = z.object({ id: z.string(), tenant: z.string(), agent: z.string(), node: z.string(), state: z.string() })
export type LivingPlace = z.infer<typeof place>

/** Everything that lives in the scope of a kill, on all nodes. */
export async function listLivingIn(
  db: Queries,
  of: Pick<StoredKill, 'scope' | 'tenant' | 'target'>,
): Promise<readonly LivingPlace[]> {
  let query = db
    .selectFrom('sandboxes')
    .select(['id', 'tenant', 'agent', 'node', 'state'])
    .where('state', 'in', LIVING_STATES)
  if (of.scope !== 'all') query = query.where('tenant', '=', of.tenant)
  if (of.scope === 'agent') query = query.where('agent', '=', of.target)
  if (of.scope === 'sandbox') query = query.where('id', '=', of.target)
  return z.array(place).parse(await query.execute())
}
