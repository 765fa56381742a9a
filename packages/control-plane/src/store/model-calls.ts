import { z } from 'zod'
import type { BudgetScope } from './budgets.ts'
import type { ModelCallTable } from './engine/schema.ts'
import type { Queries } from './engine/store.ts'

export type StoredModelCall = Readonly<ModelCallTable>

/** A sum comes as text from one dialect, and as null of nothing from both. */
const amount = z.coerce.number().pipe(z.int())

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

/** Money set aside on a day for the calls of an agent, or with null of its whole tenant. */
export async function sumCeilings(db: Queries, of: BudgetScope & { readonly day: string }): Promise<number> {
  let query = db
    .selectFrom('modelCalls')
    .select(({ fn }) => fn.sum('ceilingMicroDollars').as('sum'))
    .where('tenant', '=', of.tenant)
    .where('day', '=', of.day)
  if (of.agent !== null) query = query.where('agent', '=', of.agent)
  return amount.parse((await query.executeTakeFirstOrThrow()).sum)
}

/** Calls of a node that nobody will report: they are over time, or their doors process is gone. */
export async function listLostModelCalls(
  db: Queries,
  of: { readonly node: string; readonly now: number; readonly doors: string | null; readonly limit: number },
): Promise<readonly StoredModelCall[]> {
  return db
    .selectFrom('modelCalls')
    .selectAll()
    .where('node', '=', of.node)
    .where((where) =>
      where.or([where('expiresAt', '<=', of.now), ...(of.doors === null ? [] : [where('doors', '<>', of.doors)])]),
    )
    .orderBy('openedAt')
    .limit(of.limit)
    .execute()
}
