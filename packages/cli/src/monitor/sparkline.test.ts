import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sparkline } from './sparkline.ts'

describe('a sparkline', () => {
  it('is as high as the share of the highest, and blank where nothing is known', () => {
    expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7, 8], 20)).toBe('▁▁▂▃▄▅▆▇█')
    expect(sparkline([5, null, 5], 20)).toBe('█ █')
    expect(sparkline([0, 0], 20)).toBe('▁▁')
    expect(sparkline([], 20)).toBe('')
  })

  it('fits its width, and never loses the peak', () => {
    const values = fc.array(fc.option(fc.integer({ min: 0, max: 1000 })), { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 60 }), (given, width) => {
        const line = sparkline(given, width)
        expect(line).toHaveLength(Math.min(given.length, width))
        expect(line.includes('█')).toBe(given.some((value) => (value ?? 0) > 0))
      }),
    )
  })
})
