import { role } from '@airlock/contract'
import { z } from 'zod'
import { jsonColumn } from './json-column.ts'
import type { Queries } from './store.ts'

const storedApiKey = z.object({
  id: z.string(),
  /** SHA-256 of the secret, hexadecimal. */
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  tenant: z.string(),
  role,
  agents: jsonColumn(z.array(z.string())).nullable(),
  purpose: z.string().nullable(),
  createdAt: z.int(),
  expiresAt: z.int().nullable(),
  revokedAt: z.int().nullable(),
})
export type StoredApiKey = z.infer<typeof storedApiKey>

export async function insertApiKey(db: Queries, key: StoredApiKey): Promise<void> {
  await db
    .insertInto('apiKeys')
    .values({ ...key, agents: key.agents && JSON.stringify(key.agents) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export async function findApiKey(db: Queries, id: string): Promise<StoredApiKey | undefined> {
  const row = await db.selectFrom('apiKeys').selectAll().where('id', '=', id).executeTakeFirst()
  return row && storedApiKey.parse(row)
}

export async function revokeApiKeysOf(
  db: Queries,
  of: { readonly tenant: string; readonly purpose: string },
  at: number,
): Promise<void> {
  await db
    .updateTable('apiKeys')
    .set({ revokedAt: at })
    .where('tenant', '=', of.tenant)
    .where('purpose', '=', of.purpose)
    .where('revokedAt', 'is', null)
    .execute()
}
