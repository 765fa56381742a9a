import { z } from 'zod'
import { later } from './engine/later.ts'
import type { Queries } from './engine/store.ts'

/** Tokens of a sandbox that were issued before this are void; undefined when none was ever taken back. */
export async function findTokensVoidBefore(db: Queries, sandbox: string): Promise<number | undefined> {
  const row = await db.selectFrom('sandboxTokens').selectAll().where('sandbox', '=', sandbox).executeTakeFirst()
  return row && z.int().parse(row.voidBefore)
}

/** Only ever moves forward, whoever writes last. */
export async function voidTokensBefore(db: Queries, sandbox: string, at: number): Promise<void> {
  await db
    .insertInto('sandboxTokens')
    .values({ sandbox, voidBefore: at })
    .onConflict((conflict) =>
      conflict.column('sandbox').doUpdateSet({ voidBefore: later('sandboxTokens.voidBefore', at) }),
    )
    .execute()
}
