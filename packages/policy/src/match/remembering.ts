import { type Automaton, isWordCharacter, type State } from './automaton.ts'

const MAX_REMEMBERED = 4096
const ASCII = 128
const END = -1

/** Where an automaton is: the states it may be in, and what stands before. */
interface Place {
  readonly states: readonly number[]
  readonly before: 'start' | 'word' | 'other'
  /** By the next character: where it leads, or whether it matches whatever follows. */
  readonly ascii: (Place | boolean | undefined)[]
  readonly others: Map<number, Place | boolean>
}

/**
 * Answers as `runAutomaton` does, and remembers which places lead where: most characters cost one look-up, however many
 * states there are. What it remembers is bounded, and nothing of a text is in it.
 */
export function rememberAutomaton(automaton: Automaton): (text: string) => boolean {
  const memory = new Memory(automaton)
  return (text) => memory.matches(text)
}

class Memory {
  readonly #automaton: Automaton
  #places = new Map<string, Place>()
  #remembered = 0

  constructor(automaton: Automaton) {
    this.#automaton = automaton
  }

  matches(text: string): boolean {
    let place = this.#place([this.#automaton.start], 'start')
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      const next = (code < ASCII ? place.ascii[code] : place.others.get(code)) ?? this.#follow(place, code)
      if (typeof next === 'boolean') return next
      place = next
    }
    return this.#reached(place, END).some((state) => state.kind === 'found')
  }

  #follow(place: Place, code: number): Place | boolean {
    const next = this.#next(place, code)
    if (++this.#remembered > MAX_REMEMBERED) {
      this.#places = new Map()
      this.#remembered = 0
    } else if (code < ASCII) place.ascii[code] = next
    else place.others.set(code, next)
    return next
  }

  #next(place: Place, code: number): Place | boolean {
    const { isWhole, start } = this.#automaton
    const reached = this.#reached(place, code)
    if (!isWhole && reached.some((state) => state.kind === 'found')) return true
    const states = new Set<number>(isWhole ? [] : [start])
    for (const state of reached) if (state.kind === 'take' && state.test(code)) states.add(state.next)
    if (states.size === 0) return false
    return this.#place(
      [...states].toSorted((one, other) => one - other),
      isWordCharacter(code) ? 'word' : 'other',
    )
  }

  #place(states: readonly number[], before: Place['before']): Place {
    const key = `${before} ${states.join(' ')}`
    const known = this.#places.get(key)
    if (known !== undefined) return known
    const place: Place = { states, before, ascii: [], others: new Map() }
    this.#places.set(key, place)
    return place
  }

  /** The states, and all that they lead to without a character, before the one that follows. */
  #reached({ states, before }: Place, code: number): readonly State[] {
    const reached: State[] = []
    const pending = [...states]
    const seen = new Set<number>()
    for (let index = pending.pop(); index !== undefined; index = pending.pop()) {
      const state = this.#automaton.states[index]
      if (state === undefined || seen.has(index)) continue
      seen.add(index)
      if (state.kind === 'either') pending.push(state.second, state.first)
      else if (state.kind !== 'at') reached.push(state)
      else if (holds(state.place, before, code)) pending.push(state.next)
    }
    return reached
  }
}

function holds(place: 'start' | 'end' | 'boundary', before: Place['before'], code: number): boolean {
  if (place === 'start') return before === 'start'
  if (place === 'end') return code === END
  return (before === 'word') !== isWordCharacter(code)
}
