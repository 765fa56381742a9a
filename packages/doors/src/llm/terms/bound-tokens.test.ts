import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { boundTokens } from './bound-tokens.ts'

describe('the bound on tokens of a text', () => {
  it.each([
    ['', 0],
    ['abc', 3],
    ['é', 2],
    ['e\u0301', 3],
    ['😀', 4],
    // One character of three bytes, which some tokenizers read as eighteen.
    ['\ufdfa', 33],
  ])('is the bytes, as they are or normalised', (text, tokens) => {
    expect(boundTokens(text)).toBe(tokens)
  })

  it('of a long text is as tight', () => {
    const tokens = boundTokens('\ufdfa'.repeat(100_000))
    expect(tokens).toBeGreaterThanOrEqual(3_300_000)
    expect(tokens).toBeLessThan(3_301_000)
  })

  it('holds across the slices that it is counted in', () => {
    const unit = fc.constantFrom('a', 'é', '\u0301', '\u0308', '\u0323', '😀', '\ufdfa', '\u{1d15e}', '한', '\ud800')
    fc.assert(
      fc.property(fc.array(unit, { minLength: 1 }), fc.nat(3), (units, offset) => {
        const text = 'a'.repeat(offset) + units.join('').repeat(Math.ceil(17_000 / units.join('').length))
        const needed = Math.max(Buffer.byteLength(text), Buffer.byteLength(text.normalize('NFKC')))
        return boundTokens(text) >= needed
      }),
      { numRuns: 30 },
    )
  })
})
