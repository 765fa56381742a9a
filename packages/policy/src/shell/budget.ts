/** What cannot be understood, or is beyond the bounds. */
export class Unreadable extends SyntaxError {}

/** Beyond the bounds: no other way of reading it is tried. */
export class Exhausted extends Unreadable {}

/** Of all work on one command or piece of code, however short it is: about a quarter of a microsecond each. */
export const LEAST_WORK = 16_000
/** Plain scripts and plain code need less: size alone is no reason to ask. */
const WORK_PER_CHARACTER = { script: 2, code: 1 } as const
/** No more is read of any text, so no reading takes longer, whatever is nested in it. */
const MOST_CHARACTERS = 128 * 1024

/** What may be spent on a text of that length. */
export function workFor(length: number, kind: keyof typeof WORK_PER_CHARACTER): number {
  return Math.max(LEAST_WORK, WORK_PER_CHARACTER[kind] * Math.min(length, MOST_CHARACTERS))
}

/**
 * The work that one reading may take, counted where it is done, and what rules will have to look at where it is noted.
 * Whoever asks waits for it, and so do all others: it ends in time for whatever is written.
 */
export class Budget {
  readonly #most: number
  #spent = 0

  constructor(most: number) {
    this.#most = most
  }

  get spent(): number {
    return this.#spent
  }

  /** Throws Exhausted when it is used up. */
  spend(work: number): void {
    this.#spent += work
    if (this.#spent > this.#most) throw new Exhausted('It is too much to read.')
  }
}
