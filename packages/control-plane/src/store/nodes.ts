import { type Expression, sql } from 'kysely'
import { z } from 'zod'
import { LIVING_STATES } from './sandboxes.ts'
import type { Queries } from './engine/store.ts'

const storedNode = z.object({
  id: z.string(),
  /** Where callers reach it; empty until it serves for the first time. */
  url: z.string(),
  /** Which server runs as this node; empty when none does. */
  holder: z.string(),
  /** Rises as long as the holder lives. */
  beat: z.int(),
  /** When it last gave a sign of life, by the clock of the store. */
  seenAt: z.int(),
  /** What its own clock said then. */
  clockAt: z.int(),
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

/** When a sign of life is given: by the clock of the store, and by that of the node. */
export interface SignTimes {
  readonly seenAt: Expression<number>
  readonly clockAt: number
}

/** Compare and set: false when somebody else held it, or gave a sign of life, since it was seen like this. */
export async function takeNode(
  db: Queries,
  seen: StoredNode,
  by: { readonly holder: string } & SignTimes,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('nodes')
    .set({ ...by, beat: seen.beat + 1 })
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
  times: SignTimes,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('nodes')
    .set((is) => ({ beat: is('beat', '+', 1), ...times }))
    .where('id', '=', node.id)
    .where('holder', '=', node.holder)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

const otherNode = storedNode.extend({
  /** How long ago the last sign of life was, by the clock of the store. */
  silentMs: z.coerce.number().pipe(z.int()),
})
export type OtherNode = z.infer<typeof otherNode>

/** The nodes beside this one that have sandboxes which live, as far as their rows say. */
export async function listOtherNodes(
  db: Queries,
  of: { readonly node: string; readonly now: Expression<number> },
): Promise<readonly OtherNode[]> {
  const rows = await db
    .selectFrom('nodes')
    .selectAll()
    .select(sql<number>`${of.now} - seen_at`.as('silentMs'))
    .where('id', '<>', of.node)
    .where((is) =>
      is.exists(
        is
          .selectFrom('sandboxes')
          .select('sandboxes.id')
          .whereRef('sandboxes.node', '=', 'nodes.id')
          .where('sandboxes.state', 'in', LIVING_STATES),
      ),
    )
    .execute()
  return z.array(otherNode).parse(rows)
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
