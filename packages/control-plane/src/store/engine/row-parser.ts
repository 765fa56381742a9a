import type { z } from 'zod'

/** Rows whose parsed form is remembered, of one table. */
const MAX_ROWS = 1024

type Row = Readonly<Record<string, unknown>>

/**
 * Parses rows that every call reads and few calls change. The database is asked each time; only a row that is word for word
 * what it was last time is not taken apart again, because that costs more than reading it does.
 */
export function rowParser<T>(schema: z.ZodType<T>): (row: Row) => T {
  const known = new Map<unknown, { readonly row: Row; readonly parsed: T }>()
  return (row) => {
    const { id } = row
    const before = known.get(id)
    if (before && (before.row === row || isSame(before.row, row))) return before.parsed
    const parsed = schema.parse(row)
    const [oldest] = known.keys()
    if (known.size >= MAX_ROWS && !before) known.delete(oldest)
    known.set(id, { row, parsed })
    return parsed
  }
}

function isSame(a: Row, b: Row): boolean {
  for (const column in b) if (a[column] !== b[column]) return false
  return true
}
