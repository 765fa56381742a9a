import { graphSpec } from '@airlock/contract'
import { z } from 'zod'
import { jsonColumn } from './engine/json-column.ts'
import type { Queries } from './engine/store.ts'

const storedGraph = z.object({
  tenant: z.string(),
  name: z.string(),
  spec: jsonColumn(graphSpec),
  createdAt: z.int(),
})
export type StoredGraph = z.infer<typeof storedGraph>

export interface GraphKey {
  readonly tenant: string
  readonly name: string
}

export async function findGraph(db: Queries, { tenant, name }: GraphKey): Promise<StoredGraph | undefined> {
  const query = db.selectFrom('graphs').selectAll().where('tenant', '=', tenant).where('name', '=', name)
  const row = await query.executeTakeFirst()
  return row && storedGraph.parse(row)
}

export async function listGraphs(db: Queries, tenant: string): Promise<readonly StoredGraph[]> {
  const query = db.selectFrom('graphs').selectAll().where('tenant', '=', tenant).orderBy('name')
  return z.array(storedGraph).parse(await query.execute())
}

/** Makes it, or replaces its specification. */
export async function writeGraph(db: Queries, graph: StoredGraph): Promise<void> {
  const spec = JSON.stringify(graph.spec)
  await db
    .insertInto('graphs')
    .values({ ...graph, spec })
    .onConflict((conflict) => conflict.columns(['tenant', 'name']).doUpdateSet({ spec }))
    .execute()
}

/** False when it was not there. */
export async function deleteGraph(db: Queries, { tenant, name }: GraphKey): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('graphs')
    .where('tenant', '=', tenant)
    .where('name', '=', name)
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}
