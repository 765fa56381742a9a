import { z } from 'zod'
import type { Queries } from './store.ts'

const storedNode = z.object({
  id: z.string(),
  /** Where callers reach it; empty until it serves for the first time. */
  url: z.string(),
  /** Which server runs as this node; empty when none does. */
  holder: z.string(),
  /** Rises as long as the holder lives. */
  beat: z.int(),
  seenAt: z.int(),
  /** The public key of its recorder. */
  auditKey: z.string().nullable(),
})
export type StoredNode = z.infer<typeof storedNode>

export async function insertNodeIfAbsent(db: Queries, node: StoredNode): Promise<void> {
  await db
    .insertInto('nodes')
    .values(node)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export async function findNode(db: Queries, id: string): Promise<StoredNode | undefined> {
  const row = await db.selectFrom('nodes').selectAll().where('id', '=', id).executeTakeFirst()
  return row && storedNode.parse(row)
}

/** Precondition: in a transaction, which then holds for as long as it lasts. */
export async function isHolder(db: Queries, node: { readonly id: string; readonly holder: string }): Promise<boolean> {
  return (await findNode(db, node.id))?.holder === node.holder
}

/** Compare and set: false when somebody else held it, or gave a sign of life, since it was seen like this. */
export async function takeNode(
  db: Queries,
  seen: StoredNode,
  by: { readonly holder: string; readonly at: number },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('nodes')
    .set({ holder: by.holder, beat: seen.beat + 1, seenAt: by.at })
    .where('id', '=', seen.id)
    .where('holder', '=', seen.holder)
    .where('beat', '=', seen.beat)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** A sign of life. False when another holds the node. */
export async function beatNode(
  db: Queries,
  node: { readonly id: string; readonly holder: string },
  at: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('nodes')
    .set((is) => ({ beat: is('beat', '+', 1), seenAt: at }))
    .where('id', '=', node.id)
    .where('holder', '=', node.holder)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

export async function describeNode(
  db: Queries,
  id: string,
  facts: { readonly url?: string; readonly auditKey?: string },
): Promise<void> {
  await db.updateTable('nodes').set(facts).where('id', '=', id).execute()
}

/** Whoever comes next need not wait. */
export async function releaseNode(db: Queries, node: { readonly id: string; readonly holder: string }): Promise<void> {
  await db
    .updateTable('nodes')
    .set({ holder: '' })
    .where('id', '=', node.id)
    .where('holder', '=', node.holder)
    .execute()
}

/**
 * In a store that is not shared everything is this node's: what it wrote before nodes had names, and under a name whose
 * file is lost.
 */
export async function adoptRows(db: Queries, node: string): Promise<void> {
  await db.updateTable('sandboxes').set({ node }).where('node', '<>', node).execute()
  await db.updateTable('auditHeads').set({ node }).where('node', '<>', node).execute()
  for (const role of ['developer', 'admin'])
    await db
      .updateTable('apiKeys')
      .set({ purpose: `${role}@${node}` })
      .where((is) => is.or([is('purpose', '=', role), is('purpose', 'like', `${role}@%`)]))
      .execute()
  await db.deleteFrom('nodes').where('id', '<>', node).execute()
}
