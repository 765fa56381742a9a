import { type SignedHead, signedHead } from '@airlock/contract'
import { z } from 'zod'
import { jsonColumn } from './engine/json-column.ts'
import type { Queries } from './engine/store.ts'

const headRow = z.object({ head: jsonColumn(signedHead) })

interface ChainKey {
  readonly tenant: string
  readonly node: string
}

/** The latest signed head of a tenant's chain on a node that we have seen. */
export async function findAuditHead(db: Queries, of: ChainKey): Promise<SignedHead | undefined> {
  const row = await db
    .selectFrom('auditHeads')
    .select('head')
    .where('tenant', '=', of.tenant)
    .where('node', '=', of.node)
    .executeTakeFirst()
  return row && headRow.parse(row).head
}

/** The same of all chains of a node, by tenant. */
export async function listAuditHeads(db: Queries, node: string): Promise<ReadonlyMap<string, SignedHead>> {
  const rows = await db.selectFrom('auditHeads').select('head').where('node', '=', node).execute()
  return new Map(rows.map((row) => headRow.parse(row).head).map((head) => [head.tenant, head]))
}

const chainRow = headRow.extend({ node: z.string(), url: z.string(), auditKey: z.string().nullable(), seenAt: z.int() })

/** Every chain of a tenant, by node. */
export async function listChains(db: Queries, tenant: string): Promise<readonly z.infer<typeof chainRow>[]> {
  const rows = await db
    .selectFrom('auditHeads')
    .innerJoin('nodes', 'nodes.id', 'auditHeads.node')
    .select(['auditHeads.node', 'auditHeads.head', 'nodes.url', 'nodes.auditKey', 'nodes.seenAt'])
    .where('auditHeads.tenant', '=', tenant)
    .orderBy('auditHeads.node')
    .execute()
  return z.array(chainRow).parse(rows)
}

/** Never goes back: a head that is not longer than the stored one changes nothing. */
export async function putAuditHead(
  db: Queries,
  head: SignedHead,
  of: { readonly node: string; readonly storedAt: number },
): Promise<void> {
  const values = { seq: head.seq, hash: head.hash, head: JSON.stringify(head), storedAt: of.storedAt }
  await db
    .insertInto('auditHeads')
    .values({ tenant: head.tenant, node: of.node, ...values })
    .onConflict((conflict) =>
      conflict.columns(['tenant', 'node']).doUpdateSet(values).where('auditHeads.seq', '<', head.seq),
    )
    .execute()
}
