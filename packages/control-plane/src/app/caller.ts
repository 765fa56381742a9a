import type { Asker } from '../approvals/asker.ts'

/** Who calls and by which request: known before anything else is. */
export type Caller = Asker

export interface Page<T> {
  readonly items: readonly T[]
  readonly nextCursor: string | null
}

/** One more row than asked for says whether there is a next page. */
export function toPage<R extends { readonly id: string }, T>(
  rows: readonly R[],
  limit: number,
  show: (row: R) => T,
): Page<T> {
  const shown = rows.slice(0, limit)
  return { items: shown.map(show), nextCursor: rows.length > limit ? (shown.at(-1)?.id ?? null) : null }
}
