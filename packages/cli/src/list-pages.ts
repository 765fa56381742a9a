/** More than a person reads; whoever has more asks for less. */
const MOST = 10_000

/** Every page of a listing, one after another. */
export async function listPages<T>(
  page: (cursor: string | undefined) => Promise<{ readonly items: readonly T[]; readonly nextCursor: string | null }>,
): Promise<readonly T[]> {
  const found: T[] = []
  let cursor: string | undefined
  do {
    const { items, nextCursor } = await page(cursor)
    found.push(...items)
    cursor = nextCursor ?? undefined
  } while (cursor !== undefined && found.length < MOST)
  return found
}
