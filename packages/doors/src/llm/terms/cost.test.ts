import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PRICES } from '../testing/terms.ts'
import { costOf } from './cost.ts'

const NONE = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0, output: 0 }
const TERMS = { prices: PRICES, longContext: null }

describe('the cost of a call', () => {
  it.each([
    [NONE, 0],
    [{ ...NONE, input: 1_000_000 }, 3_000_000],
    [{ ...NONE, input: 1 }, 3],
    [{ ...NONE, cacheRead: 1 }, 1],
    [{ ...NONE, cacheRead: 10 }, 3],
    [{ input: 1, cacheRead: 1, cacheWrite: 1, cacheWriteLong: 1, output: 1 }, 29],
  ])('of %j is %d micro-dollars, rounded up', (usage, cost) => {
    expect(costOf(usage, TERMS)).toBe(cost)
  })

  it('is not known where the price is not, and never zero for it', () => {
    expect(costOf({ ...NONE, input: 1 }, { prices: null, longContext: null })).toBeNull()
  })

  it('of a long input follows the other table, for the whole call', () => {
    const longContext = { overTokens: 10, prices: { ...PRICES, input: 6_000_000 } }
    expect(costOf({ ...NONE, input: 10 }, { prices: PRICES, longContext })).toBe(30)
    expect(costOf({ ...NONE, input: 6, cacheRead: 5 }, { prices: PRICES, longContext })).toBe(38)
  })

  it('is exact beyond what a double adds up, and bounded', () => {
    const most = Number.MAX_SAFE_INTEGER
    expect(costOf({ ...NONE, input: most }, { prices: { ...PRICES, input: 1_000_000 }, longContext: null })).toBe(most)
    expect(costOf({ ...NONE, input: most }, TERMS)).toBe(most)
  })

  it('is never less for more tokens', () => {
    const usage = fc.record({
      input: fc.nat(),
      cacheRead: fc.nat(),
      cacheWrite: fc.nat(),
      cacheWriteLong: fc.nat(),
      output: fc.nat(),
    })
    fc.assert(
      fc.property(usage, fc.constantFrom('input', 'cacheRead', 'output'), (usage, kind) => {
        const more = costOf({ ...usage, [kind]: usage[kind] + 1 }, TERMS) ?? -1
        return more >= (costOf(usage, TERMS) ?? Infinity)
      }),
    )
  })
})
