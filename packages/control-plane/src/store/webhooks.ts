import { webhookEvent } from '@airlock/contract'
import { z } from 'zod'
import { jsonColumn } from './engine/json-column.ts'
import type { Queries } from './engine/store.ts'

const storedWebhook = z.object({
  id: z.string(),
  tenant: z.string(),
  url: z.string(),
  events: jsonColumn(z.array(webhookEvent)),
  /** What signs: it must be here as it is. */
  secret: z.string(),
  createdAt: z.int(),
  createdBy: z.string(),
  lastAt: z.int().nullable(),
  lastError: z.string().nullable(),
})
export type StoredWebhook = z.infer<typeof storedWebhook>

/** Ids are new, so one that is there came from us, by a try whose answer was lost. */
export async function insertWebhook(db: Queries, row: StoredWebhook): Promise<void> {
  await db
    .insertInto('webhooks')
    .values({ ...row, events: JSON.stringify(row.events) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

/** Oldest first: ids sort by age. They are few, for each tenant has a bounded number. */
export async function listWebhooks(db: Queries, tenant: string): Promise<readonly StoredWebhook[]> {
  const rows = await db.selectFrom('webhooks').selectAll().where('tenant', '=', tenant).orderBy('id').execute()
  return z.array(storedWebhook).parse(rows)
}

/** Tenants that have webhooks. */
export async function listWebhookTenants(db: Queries): Promise<readonly string[]> {
  const rows = await db.selectFrom('webhooks').select('tenant').distinct().orderBy('tenant').execute()
  return rows.map(({ tenant }) => tenant)
}

/** Undefined when it is not there, or is another tenant's. */
export async function findWebhook(
  db: Queries,
  of: { readonly tenant: string; readonly id: string },
): Promise<StoredWebhook | undefined> {
  const row = await db
    .selectFrom('webhooks')
    .selectAll()
    .where('tenant', '=', of.tenant)
    .where('id', '=', of.id)
    .executeTakeFirst()
  return row && storedWebhook.parse(row)
}

export async function takeWebhook(
  db: Queries,
  of: { readonly tenant: string; readonly id: string },
): Promise<StoredWebhook | undefined> {
  const row = await db
    .deleteFrom('webhooks')
    .where('tenant', '=', of.tenant)
    .where('id', '=', of.id)
    .returningAll()
    .executeTakeFirst()
  return row && storedWebhook.parse(row)
}

export async function setDelivered(
  db: Queries,
  id: string,
  last: { readonly at: number; readonly error: string | null },
): Promise<void> {
  await db.updateTable('webhooks').set({ lastAt: last.at, lastError: last.error }).where('id', '=', id).execute()
}
