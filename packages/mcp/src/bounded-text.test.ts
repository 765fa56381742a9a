import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BoundedText } from './bounded-text.ts'

const KEPT = 64 * 1024

describe('text that is bounded', () => {
  it('is the whole text as long as that is short, however it was cut into chunks', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 7 }), (words, size) => {
        const bytes = Buffer.from(words)
        const bounded = new BoundedText()
        for (let at = 0; at < bytes.length; at += size) bounded.push(bytes.subarray(at, at + size))
        expect({ text: bounded.text(), cut: bounded.cutBytes }).toEqual({ text: bytes.toString('utf8'), cut: 0 })
      }),
    )
  })

  it('keeps the beginning and the end of a long one, and says how much is missing', () => {
    const bounded = new BoundedText()
    bounded.push(Buffer.from('first\n'))
    for (let i = 0; i < 100; i++) bounded.push(Buffer.alloc(10_000, 'x'))
    bounded.push(Buffer.from('\nlast'))
    const all = 6 + 1_000_000 + 5
    expect(bounded.cutBytes).toBe(all - KEPT)
    expect(bounded.text()).toMatch(/^first\nx+\n\[\d+ bytes were cut here\]\nx+\nlast$/)
    expect(bounded.text()).toContain(`[${all - KEPT} bytes were cut here]`)
  })

  it('leaves out a character that the cut went through', () => {
    for (const shift of ['', 'a', 'ab', 'abc']) {
      const bounded = BoundedText.of(shift + '😀'.repeat(100_000))
      expect(bounded.text()).not.toContain('\ufffd')
      expect(bounded.text()).toMatch(/^a?b?c?(?:😀)+\n\[\d+ bytes were cut here\]\n(?:😀)+$/u)
    }
  })
})
