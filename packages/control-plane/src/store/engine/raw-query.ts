import { CompiledQuery } from 'kysely'
import type { Parameter, RawAnswer } from './run-now.ts'
import type { Queries } from './store.ts'

/**
 * For the few queries that every step or command asks: to build one costs several times what running it does, so these are
 * written down, and where nothing has to be waited for they wait for nothing. `$1` is the first parameter, and rows come as from
 * any other query.
 */
export async function rawQuery(db: Queries, text: string, parameters: readonly Parameter[]): Promise<RawAnswer> {
  const now = db.runNow?.(text, parameters)
  if (now) return now
  const { rows, numAffectedRows } = await db.executeQuery<Record<string, unknown>>(
    CompiledQuery.raw(text, [...parameters]),
  )
  return { rows, changes: Number(numAffectedRows ?? 0) }
}
