import { type RawBuilder, sql } from 'kysely'

/** For a column of times that only ever move forward, whoever writes last. */
export function later(column: string, at: number): RawBuilder<number> {
  const now = sql.ref(column)
  return sql<number>`case when ${now} < ${at} then ${at} else ${now} end`
}
