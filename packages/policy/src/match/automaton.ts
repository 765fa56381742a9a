/** What one step of an automaton does: take a character, go two ways, or hold only at a place. */
export type State =
  | { readonly kind: 'take'; readonly test: (code: number) => boolean; readonly next: number }
  | { readonly kind: 'either'; readonly first: number; readonly second: number }
  | { readonly kind: 'at'; readonly place: 'start' | 'end' | 'boundary'; readonly next: number }
  | { readonly kind: 'found' }

export interface Automaton {
  readonly states: readonly State[]
  readonly start: number
  /** It has to match from the first character to the last. */
  readonly isWhole: boolean
}

/**
 * All states at once, one character at a time: a state is visited at most once per character, so that the work is bounded by
 * states × characters whatever the pattern is. `onVisit` counts.
 */
export function runAutomaton(automaton: Automaton, text: string, onVisit?: () => void): boolean {
  const run = new Run(automaton, text, onVisit)
  run.enter(automaton.start, 0)
  for (let at = 0; at < text.length; at++) {
    if (run.isFound && !automaton.isWhole) return true
    if (run.isEmpty && automaton.isWhole) return false
    run.take(at)
  }
  return run.isFound
}

class Run {
  readonly #automaton: Automaton
  readonly #text: string
  readonly #onVisit: (() => void) | undefined
  readonly #seen: Int32Array
  #here: number[] = []
  isFound = false

  constructor(automaton: Automaton, text: string, onVisit: (() => void) | undefined) {
    this.#automaton = automaton
    this.#text = text
    this.#onVisit = onVisit
    this.#seen = new Int32Array(automaton.states.length).fill(-1)
  }

  get isEmpty(): boolean {
    return this.#here.length === 0
  }

  /** One character further. */
  take(at: number): void {
    const before = this.#here
    const code = this.#text.charCodeAt(at)
    this.#here = []
    this.isFound = false
    for (const index of before) {
      const state = this.#automaton.states[index]
      if (state?.kind === 'take' && state.test(code)) this.enter(state.next, at + 1)
    }
    if (!this.#automaton.isWhole) this.enter(this.#automaton.start, at + 1)
  }

  /** The state, and all that it leads to without a character. */
  enter(first: number, at: number): void {
    const pending = [first]
    for (let index = pending.pop(); index !== undefined; index = pending.pop()) {
      if (this.#seen[index] === at) continue
      this.#seen[index] = at
      this.#onVisit?.()
      const state = this.#automaton.states[index]
      if (state !== undefined) this.#visit(state, { index, at, pending })
    }
  }

  #visit(state: State, { index, at, pending }: { index: number; at: number; pending: number[] }): void {
    if (state.kind === 'take') this.#here.push(index)
    else if (state.kind === 'found') this.isFound = true
    else if (state.kind === 'either') pending.push(state.second, state.first)
    else if (holds(state.place, this.#text, at)) pending.push(state.next)
  }
}

function holds(place: 'start' | 'end' | 'boundary', text: string, at: number): boolean {
  if (place === 'start') return at === 0
  if (place === 'end') return at === text.length
  return isWordCharacter(text.charCodeAt(at - 1)) !== isWordCharacter(text.charCodeAt(at))
}

export function isWordCharacter(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95 || (code >= 97 && code <= 122)
}
