import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Automaton, runAutomaton, type State } from './automaton.ts'
import { rememberAutomaton } from './remembering.ts'

const STATES = 6
const index = fc.integer({ min: 0, max: STATES })
const state: fc.Arbitrary<State> = fc.oneof(
  fc.record({ kind: fc.constant('take' as const), test: fc.constantFrom(isA, isNotA, always), next: index }),
  fc.record({ kind: fc.constant('either' as const), first: index, second: index }),
  fc.record({ kind: fc.constant('at' as const), place: fc.constantFrom('start', 'end', 'boundary'), next: index }),
)
const automaton: fc.Arbitrary<Automaton> = fc.record({
  states: fc
    .array(state, { minLength: STATES, maxLength: STATES })
    .map((states): State[] => [...states, { kind: 'found' }]),
  start: index,
  isWhole: fc.boolean(),
})

function isA(code: number): boolean {
  return code === 97
}

function isNotA(code: number): boolean {
  return code !== 97
}

function always(): boolean {
  return true
}

describe('an automaton that remembers', () => {
  it('answers as one that does not, for every text that it is asked', () => {
    const texts = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', ' ', 'é') }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(automaton, texts, (of, asked) => {
        const matches = rememberAutomaton(of)
        expect(asked.map((text) => matches(text))).toEqual(asked.map((text) => runAutomaton(of, text)))
      }),
      { numRuns: 2000 },
    )
  })

  it('still answers right after it had to forget', () => {
    const states: State[] = [
      { kind: 'take', test: isA, next: 1 },
      { kind: 'take', test: isNotA, next: 2 },
      { kind: 'found' },
    ]
    const matches = rememberAutomaton({ states, start: 0, isWhole: false })
    const many = Array.from({ length: 9000 }, (_, at) => String.fromCodePoint(1000 + at)).join('')
    expect([matches(many), matches(`${many}a`), matches(`${many}ab${many}`), matches('ab')]).toEqual([
      false,
      false,
      true,
      true,
    ])
  })
})
