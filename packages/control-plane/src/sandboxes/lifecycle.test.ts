import { SANDBOX_STATES } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { LIVING_STATES } from '../store/sandboxes.ts'
import { assertMove, isEnded, MOVES } from './lifecycle.ts'

describe('the states of a sandbox', () => {
  it('can move as the table says and in no other way', () => {
    const legal = (from: (typeof SANDBOX_STATES)[number]) =>
      SANDBOX_STATES.filter((to) => {
        try {
          assertMove(from, to)
          return true
        } catch {
          return false
        }
      })
    expect(Object.fromEntries(SANDBOX_STATES.map((from) => [from, legal(from).toSorted()]))).toEqual(
      Object.fromEntries(Object.entries(MOVES).map(([from, to]) => [from, to.toSorted()])),
    )
  })

  it('names both states of an illegal move', () => {
    expect(() => assertMove('stopped', 'active')).toThrow('from stopped to active')
  })

  it('hold a name and a place exactly as long as they can move on', () => {
    expect(SANDBOX_STATES.filter((state) => !isEnded(state))).toEqual(LIVING_STATES)
  })

  it('end only through stopping', () => {
    const into = (to: 'stopped' | 'error') =>
      SANDBOX_STATES.filter((from) => (MOVES[from] as readonly string[]).includes(to))
    expect([into('stopped'), into('error')]).toEqual([['stopping'], ['stopping']])
  })
})
