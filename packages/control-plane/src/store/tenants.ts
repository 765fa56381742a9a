import type { Queries } from './store.ts'

export async function insertTenantIfAbsent(
  db: Queries,
  tenant: { readonly id: string; readonly createdAt: number },
): Promise<void> {
  await db
    .insertInto('tenants')
    .values(tenant)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export async function listTenants(db: Queries): Promise<readonly string[]> {
  const rows = await db.selectFrom('tenants').select('id').orderBy('id').execute()
  return rows.map((row) => row.id)
}
