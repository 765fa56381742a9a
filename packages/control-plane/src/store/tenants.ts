import { z } from 'zod'
import type { Queries } from './engine/store.ts'

const storedTenant = z.object({ id: z.string(), createdAt: z.int() })
export type StoredTenant = z.infer<typeof storedTenant>

/** False when there is one already. */
export async function insertTenantIfAbsent(db: Queries, tenant: StoredTenant): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('tenants')
    .values(tenant)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .executeTakeFirstOrThrow()
  return (numInsertedOrUpdatedRows ?? 0n) > 0n
}

export async function findTenant(db: Queries, id: string): Promise<StoredTenant | undefined> {
  const row = await db.selectFrom('tenants').selectAll().where('id', '=', id).executeTakeFirst()
  return row && storedTenant.parse(row)
}

/** One page by name. */
export async function pageTenants(
  db: Queries,
  page: { readonly after: string | undefined; readonly limit: number },
): Promise<readonly StoredTenant[]> {
  let query = db.selectFrom('tenants').selectAll().orderBy('id').limit(page.limit)
  if (page.after !== undefined) query = query.where('id', '>', page.after)
  return z.array(storedTenant).parse(await query.execute())
}

export async function listTenants(db: Queries): Promise<readonly string[]> {
  const rows = await db.selectFrom('tenants').select('id').orderBy('id').execute()
  return rows.map((row) => row.id)
}
