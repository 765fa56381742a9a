/** Which cases of the big tables run: `TEST_CASES=all` is all of them, `TEST_SEED` repeats a choice. */
const env = process.env

interface Sampled<T> {
  /** Names the table: each is drawn from alike, whichever others there are. */
  readonly table: string
  /** How many are drawn beside those that always run. */
  readonly count: number
  readonly nameOf: (row: T) => string
  /** Cases that failed once, and cases that no run may miss. */
  readonly always?: readonly string[]
}

/**
 * A few rows of a big table, in its order, others in each run: over the days all are seen, and a run stays short. The
 * seed is printed with the results. All rows when `TEST_CASES=all`.
 */
export function sample<T>(rows: readonly T[], { table, count, nameOf, always = [] }: Sampled<T>): readonly T[] {
  const unknown = always.filter((name) => !rows.some((row) => nameOf(row) === name))
  if (unknown.length > 0) throw new TypeError(`not in the table ${table}: ${unknown.join(', ')}`)
  if (env['TEST_CASES'] === 'all') return rows
  const drawn = rows
    .filter((row) => !always.includes(nameOf(row)))
    .map((row) => ({ name: nameOf(row), at: hash(`${testSeed()} ${table} ${nameOf(row)}`) }))
    .toSorted((a, b) => a.at - b.at)
    .slice(0, count)
    .map(({ name }) => name)
  const chosen = new Set([...always, ...drawn])
  return rows.filter((row) => chosen.has(nameOf(row)))
}

/** The seed of this run, the same in all its workers: `vitest.config.ts` sets it. */
export function testSeed(): string {
  return env['TEST_SEED'] ?? '0'
}

/** FNV-1a with a last mix: near names are far apart. */
function hash(text: string): number {
  let value = 0x811c_9dc5
  for (const char of text) value = Math.imul(value ^ (char.codePointAt(0) ?? 0), 0x0100_0193)
  value = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b)
  return (value ^ (value >>> 13)) >>> 0
}
