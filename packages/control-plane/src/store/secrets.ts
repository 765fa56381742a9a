import { z } from 'zod'
import type { Queries } from './engine/store.ts'

const storedSecret = z.object({
  tenant: z.string(),
  name: z.string(),
  origin: z.string(),
  keyId: z.string(),
  sealed: z.string(),
  version: z.int(),
  createdAt: z.int(),
  updatedAt: z.int(),
  updatedBy: z.string(),
})
export type StoredSecret = z.infer<typeof storedSecret>

interface SecretRef {
  readonly tenant: string
  readonly name: string
}

/** Takes the place of the value before. */
export async function putSecret(db: Queries, row: StoredSecret): Promise<void> {
  const { tenant: _tenant, name: _name, createdAt: _createdAt, ...changes } = row
  await db
    .insertInto('secrets')
    .values(row)
    .onConflict((conflict) => conflict.columns(['tenant', 'name']).doUpdateSet(changes))
    .execute()
}

export async function listSecrets(db: Queries, tenant: string): Promise<readonly StoredSecret[]> {
  const rows = await db.selectFrom('secrets').selectAll().where('tenant', '=', tenant).orderBy('name').execute()
  return z.array(storedSecret).parse(rows)
}

export async function findSecret(db: Queries, { tenant, name }: SecretRef): Promise<StoredSecret | undefined> {
  const row = await db
    .selectFrom('secrets')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('name', '=', name)
    .executeTakeFirst()
  return row && storedSecret.parse(row)
}

export async function takeSecret(db: Queries, { tenant, name }: SecretRef): Promise<StoredSecret | undefined> {
  const row = await db
    .deleteFrom('secrets')
    .where('tenant', '=', tenant)
    .where('name', '=', name)
    .returningAll()
    .executeTakeFirst()
  return row && storedSecret.parse(row)
}
