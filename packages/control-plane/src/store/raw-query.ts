import { CompiledQuery } from 'kysely'
import type { Queries } from './store.ts'

/**
 * For the few queries that every step or command asks: to build one costs several times what running it does, so these are
 * written down. `$1` is the first parameter, and rows come as from any other query.
 */
export async function rawQuery(
  db: Queries,
  text: string,
  parameters: readonly (string | number | null)[],
): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[]; readonly changes: number }> {
  const { rows, numAffectedRows } = await db.executeQuery<Record<string, unknown>>(
    CompiledQuery.raw(text, [...parameters]),
  )
  return { rows, changes: Number(numAffectedRows ?? 0) }
}
