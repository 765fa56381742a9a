import { type SignedHead, signedHead } from '@airlock/contract'
import { z } from 'zod'
import { jsonColumn } from './json-column.ts'
import type { Queries } from './store.ts'

const headRow = z.object({ head: jsonColumn(signedHead) })

/** The latest signed head of a tenant's chain that we have seen. */
export async function findAuditHead(db: Queries, tenant: string): Promise<SignedHead | undefined> {
  const row = await db.selectFrom('auditHeads').select('head').where('tenant', '=', tenant).executeTakeFirst()
  return row && headRow.parse(row).head
}

/** Never goes back: a head that is not longer than the stored one changes nothing. */
export async function putAuditHead(db: Queries, head: SignedHead, storedAt: number): Promise<void> {
  const values = { seq: head.seq, hash: head.hash, head: JSON.stringify(head), storedAt }
  await db
    .insertInto('auditHeads')
    .values({ tenant: head.tenant, ...values })
    .onConflict((conflict) => conflict.column('tenant').doUpdateSet(values).where('auditHeads.seq', '<', head.seq))
    .execute()
}
