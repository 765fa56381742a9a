import { grant } from '@airlock/contract'
import { z } from 'zod'
import type { AgentKey } from './agents.ts'
import { jsonColumn } from './engine/json-column.ts'
import type { Queries } from './engine/store.ts'

const words = jsonColumn(z.array(z.string()))

const storedGrant = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string(),
  node: z.string(),
  path: z.string(),
  mode: grant.shape.mode,
  kind: grant.shape.kind,
  target: z.string(),
  allowed: words,
  blocked: words,
  /** What was at the path when it was granted. */
  dev: z.string(),
  ino: z.string(),
  createdAt: z.int(),
  createdBy: z.string(),
})
export type StoredGrant = z.infer<typeof storedGrant>

/** Ids are new, so one that is there came from us, by a try whose answer was lost. */
export async function insertGrant(db: Queries, row: StoredGrant): Promise<void> {
  const { allowed, blocked, ...rest } = row
  await db
    .insertInto('grants')
    .values({ ...rest, allowed: JSON.stringify(allowed), blocked: JSON.stringify(blocked) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

/** Oldest first: ids sort by age. They are few, for each agent has a bounded number. */
export async function listGrants(
  db: Queries,
  of: AgentKey & { readonly node?: string },
): Promise<readonly StoredGrant[]> {
  let query = db
    .selectFrom('grants')
    .selectAll()
    .where('tenant', '=', of.tenant)
    .where('agent', '=', of.agent)
    .orderBy('id')
  if (of.node !== undefined) query = query.where('node', '=', of.node)
  return z.array(storedGrant).parse(await query.execute())
}

/** Undefined when it is not there, or is another agent's. */
export async function takeGrant(db: Queries, of: AgentKey & { readonly id: string }): Promise<StoredGrant | undefined> {
  const row = await db
    .deleteFrom('grants')
    .where('id', '=', of.id)
    .where('tenant', '=', of.tenant)
    .where('agent', '=', of.agent)
    .returningAll()
    .executeTakeFirst()
  return row && storedGrant.parse(row)
}

/** A deleted agent leaves nothing to whoever takes its name. */
export async function removeGrantsOf(db: Queries, of: AgentKey): Promise<void> {
  await db.deleteFrom('grants').where('tenant', '=', of.tenant).where('agent', '=', of.agent).execute()
}

/** Which of these are still there. */
export async function findGrantIds(db: Queries, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db.selectFrom('grants').select('id').where('id', 'in', ids).execute()
  return new Set(rows.map(({ id }) => id))
}
