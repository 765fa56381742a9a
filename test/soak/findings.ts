/** Something that nothing explains, with what repeats it. */
export interface Finding {
  readonly round: number
  readonly lane: number | null
  readonly during: string
  readonly what: string
}

const MOST = 200

/** What was asked for, what was answered, and what should not have been. */
export class Findings {
  readonly #found: Finding[] = []
  readonly #done = new Map<string, number>()
  readonly #refused = new Map<string, number>()
  #round = 0

  set round(number: number) {
    this.#round = number
  }

  get found(): readonly Finding[] {
    return this.#found
  }

  /** How often each operation was answered as it should be. */
  get done(): Readonly<Record<string, number>> {
    return sorted(this.#done)
  }

  /** How often each error came that the situation explains. */
  get refused(): Readonly<Record<string, number>> {
    return sorted(this.#refused)
  }

  countDone(operation: string): void {
    this.#done.set(operation, (this.#done.get(operation) ?? 0) + 1)
  }

  countRefused(code: string): void {
    this.#refused.set(code, (this.#refused.get(code) ?? 0) + 1)
  }

  fail(lane: number | null, during: string, what: string): void {
    if (this.#found.length < MOST) this.#found.push({ round: this.#round, lane, during, what })
  }
}

function sorted(counts: ReadonlyMap<string, number>): Readonly<Record<string, number>> {
  return Object.fromEntries([...counts].toSorted(([a], [b]) => a.localeCompare(b)))
}
