import { type Budget, Exhausted, Unreadable } from './budget.ts'

const MAX_LENGTH = 128 * 1024
const MAX_DEPTH = 40
const MAX_RETRIES = 16
/** Plain text is taken in long pieces. */
const CHARACTERS_PER_STEP = 64

/** A place in a text, and how much was read: every loop of the parser moves it or ends. */
export class Cursor {
  readonly text: string
  at = 0
  #depth = 0
  readonly #budget: Budget
  readonly #tried: { retries: number }

  constructor(text: string, budget: Budget, tried = { retries: 0 }) {
    this.#budget = budget
    this.#tried = tried
    if (text.length > MAX_LENGTH) throw new Unreadable('It is too long.')
    budget.spend(text.length / CHARACTERS_PER_STEP)
    this.text = text
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length
  }

  peek(offset = 0): string {
    return this.text.charAt(this.at + offset)
  }

  startsWith(what: string): boolean {
    return this.text.startsWith(what, this.at)
  }

  eat(what: string): boolean {
    if (!this.text.startsWith(what, this.at)) return false
    this.at += what.length
    return true
  }

  require(what: string): void {
    if (!this.eat(what)) throw new Unreadable(`There is no "${what}" where one must be.`)
  }

  /** What a sticky expression finds here; empty when nothing. */
  take(sticky: RegExp): string {
    sticky.lastIndex = this.at
    const found = sticky.exec(this.text)?.[0] ?? ''
    this.at += found.length
    return found
  }

  /** Up to the text, which is eaten too. */
  takeUntil(what: string): string {
    const end = this.text.indexOf(what, this.at)
    if (end < 0) throw new Unreadable(`Nothing closes it with ${what}.`)
    const taken = this.text.slice(this.at, end)
    this.at = end + what.length
    return taken
  }

  /** Something inside of something: only so deep. */
  nested<T>(read: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw new Unreadable('It is nested too deeply.')
    try {
      return read()
    } finally {
      this.#depth--
    }
  }

  /** Another text that counts as a part of this one. */
  inner(text: string): Cursor {
    const inner = new Cursor(text, this.#budget, this.#tried)
    inner.#depth = this.#depth
    return inner
  }

  /** Something was read: a part of a word is one, a command several. */
  count(steps = 1): void {
    this.#budget.spend(steps)
  }

  /** Reads it the one way, or else the other; only so often, for each may be long. */
  either<T>(one: () => T, other: () => T): T {
    const begin = this.at
    try {
      return this.nested(one)
    } catch (error) {
      if (!(error instanceof Unreadable) || error instanceof Exhausted) throw error
      if (++this.#tried.retries > MAX_RETRIES) throw new Exhausted('It can be read in too many ways.')
      this.at = begin
      return other()
    }
  }
}
