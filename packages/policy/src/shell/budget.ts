/** What cannot be understood, or is beyond the bounds. */
export class Unreadable extends SyntaxError {}

/** Beyond the bounds: no other way of reading it is tried. */
export class Exhausted extends Unreadable {}

/** Of all work on one command or piece of code: about a quarter of a microsecond each. */
export const MAX_WORK = 16_000

/**
 * The work that one reading may take, counted where it is done, and what rules will have to look at where it is noted.
 * Whoever asks waits for it, and so do all others: it ends in time for whatever is written.
 */
export class Budget {
  #spent = 0

  get spent(): number {
    return this.#spent
  }

  /** Throws Exhausted when it is used up. */
  spend(work: number): void {
    this.#spent += work
    if (this.#spent > MAX_WORK) throw new Exhausted('It is too much to read.')
  }
}
