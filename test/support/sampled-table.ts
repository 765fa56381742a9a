import { hash, testSeed } from './seed.ts'

interface Definition<T> {
  /** Part of the seed: adding a table does not change what the others draw. */
  readonly name: string
  readonly rows: readonly T[]
  nameOf(row: T): string
  /** How many rows are drawn beside `always`. */
  readonly count: number
  /** Each group has at least one row in every draw, even when that exceeds `count`. One group if absent. */
  groupOf?(row: T): string
  /** Rows that failed once, and rows that no run may miss. */
  readonly always?: readonly string[]
}

/** A table of test cases, too long for every run. Tables are listed in `sampled-tables.ts`. */
export class SampledTable<T> {
  readonly #definition: Definition<T>

  constructor(definition: Definition<T>) {
    const { name, rows, always = [] } = definition
    const names = new Set(rows.map((row) => definition.nameOf(row)))
    const unknown = always.filter((row) => !names.has(row))
    if (unknown.length > 0) throw new TypeError(`not in the table ${name}: ${unknown.join(', ')}`)
    if (names.size < rows.length) throw new TypeError(`two rows of the table ${name} have one name`)
    if (rows.length === 0) throw new TypeError(`the table ${name} is empty`)
    this.#definition = definition
  }

  get groups(): readonly string[] {
    return [...new Set(this.#definition.rows.map((row) => this.groupOf(row)))]
  }

  groupOf(row: T): string {
    return this.#definition.groupOf?.(row) ?? ''
  }

  /** The rows of this run, in the order of the table. All rows with `TEST_CASES=all`. */
  sample(): readonly T[] {
    return process.env['TEST_CASES'] === 'all' ? this.#definition.rows : this.draw(testSeed())
  }

  /** The same rows for the same seed. */
  draw(seed: string): readonly T[] {
    const { name, rows, count, always = [] } = this.#definition
    const fixed = rows.filter((row) => always.includes(this.#nameOf(row)))
    const shuffled = rows
      .filter((row) => !fixed.includes(row))
      .map((row) => ({ row, at: hash(`${seed} ${name} ${this.#nameOf(row)}`) }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ row }) => row)
    const uncovered = new Set(this.groups).difference(new Set(fixed.map((row) => this.groupOf(row))))
    const firsts = shuffled.filter((row) => uncovered.delete(this.groupOf(row)))
    const others = shuffled.filter((row) => !firsts.includes(row)).slice(0, Math.max(0, count - firsts.length))
    const chosen = new Set([...fixed, ...firsts, ...others])
    return rows.filter((row) => chosen.has(row))
  }

  #nameOf(row: T): string {
    return this.#definition.nameOf(row)
  }
}
