/** Does the work for every item, at most `limit` at once, and waits for all of it, however each goes. */
export async function inParallel<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const left = [...items]
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, worker))
}
