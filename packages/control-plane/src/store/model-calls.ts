import { newRecord, type NewRecord } from '@airlock/contract'
import { z } from 'zod'
import type { BudgetScope } from './budgets.ts'
import type { ModelCallTable } from './engine/schema.ts'
import type { Queries } from './engine/store.ts'
import { summedAmount as amount, sumOf } from './engine/sums.ts'

export type StoredModelCall = Readonly<ModelCallTable>

/** Ids are new: an id that is there came from an earlier try whose answer was lost. */
export async function insertModelCall(db: Queries, call: StoredModelCall): Promise<void> {
  await db
    .insertInto('modelCalls')
    .values(call)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export async function findModelCall(db: Queries, id: string): Promise<StoredModelCall | undefined> {
  return db.selectFrom('modelCalls').selectAll().where('id', '=', id).executeTakeFirst()
}

export async function deleteModelCall(db: Queries, id: string): Promise<void> {
  await db.deleteFrom('modelCalls').where('id', '=', id).execute()
}

/** Reserved for calls under way. */
export interface HeldByCalls {
  readonly calls: number
  readonly tokens: number
  readonly microDollars: number
}

const held = z.object({ calls: amount, tokens: amount, microDollars: amount })

/** Reserved on a day for the calls of an agent, or with null of its whole tenant; or for those of a sandbox. */
export async function sumHeldByCalls(
  db: Queries,
  of: (BudgetScope & { readonly day: string }) | { readonly sandbox: string },
): Promise<HeldByCalls> {
  let query = db
    .selectFrom('modelCalls')
    .select(({ fn }) => [
      fn.countAll().as('calls'),
      sumOf('ceilingTokens').as('tokens'),
      sumOf('ceilingMicroDollars').as('microDollars'),
    ])
  if ('sandbox' in of) query = query.where('sandbox', '=', of.sandbox)
  else query = query.where('tenant', '=', of.tenant).where('day', '=', of.day)
  if ('agent' in of && of.agent !== null) query = query.where('agent', '=', of.agent)
  return held.parse(await query.executeTakeFirstOrThrow())
}

/** Calls of a node that nobody will report: they are over time, their doors process is gone, or their sandbox ended before `endedBefore`. */
export async function listLostModelCalls(
  db: Queries,
  of: {
    readonly node: string
    readonly now: number
    readonly doors: string | null
    readonly endedBefore: number
    readonly limit: number
  },
): Promise<readonly StoredModelCall[]> {
  return db
    .selectFrom('modelCalls')
    .selectAll()
    .where('node', '=', of.node)
    .where((where) =>
      where.or([
        where('expiresAt', '<=', of.now),
        where('sandbox', 'in', endedSandboxes(db, of.endedBefore)),
        ...(of.doors === null ? [] : [where('doors', '<>', of.doors)]),
      ]),
    )
    .orderBy('openedAt')
    .limit(of.limit)
    .execute()
}

function endedSandboxes(db: Queries, before: number) {
  return db.selectFrom('sandboxes').select('id').where('endedAt', '<=', before)
}

/** All calls under way of a node. */
export async function listModelCallsOfNode(db: Queries, node: string): Promise<readonly StoredModelCall[]> {
  return db.selectFrom('modelCalls').selectAll().where('node', '=', node).execute()
}

/** Calls that one doors process opened on a node before that time. */
export async function listModelCallsOf(
  db: Queries,
  of: { readonly node: string; readonly doors: string; readonly openedBefore: number },
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('modelCalls')
    .select('id')
    .where('node', '=', of.node)
    .where('doors', '=', of.doors)
    .where('openedAt', '<', of.openedBefore)
    .execute()
  return rows.map(({ id }) => id)
}

/** A call whose last record may be missing in the evidence. */
export interface ModelCallEnd {
  readonly id: string
  readonly node: string
  readonly record: NewRecord
}

export async function insertModelCallEnd(db: Queries, { id, node, record }: ModelCallEnd): Promise<void> {
  await db
    .insertInto('modelCallEnds')
    .values({ id, node, record: JSON.stringify(record) })
    .execute()
}

export async function listOwedModelCalls(
  db: Queries,
  of: { readonly node: string; readonly after: string; readonly limit: number },
): Promise<readonly ModelCallEnd[]> {
  const query = db.selectFrom('modelCallEnds').selectAll().where('node', '=', of.node).where('id', '>', of.after)
  const rows = await query.orderBy('id').limit(of.limit).execute()
  return rows.map((row) => ({ ...row, record: newRecord.parse(JSON.parse(row.record)) }))
}

/** Their last records are in the evidence. */
export async function setModelCallsRecorded(db: Queries, ids: readonly string[]): Promise<void> {
  await db.deleteFrom('modelCallEnds').where('id', 'in', ids).execute()
}
