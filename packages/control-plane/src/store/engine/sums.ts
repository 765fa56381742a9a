import { sql } from 'kysely'
import { z } from 'zod'

/**
 * Sum of a column. Adds as floating point: both dialects throw at sums of integers that are too large, SQLite in the query and
 * when the result is read. Exact up to 2^53.
 */
export function sumOf(column: string) {
  return sql`sum(cast(${sql.ref(column)} as double precision))`
}

/** Result of `sumOf` or a count. Null, the sum of no rows, becomes 0; sums above the largest exact number become that number. */
export const summedAmount = z.coerce
  .number()
  .transform((sum) => Math.min(sum, Number.MAX_SAFE_INTEGER))
  .pipe(z.int())
