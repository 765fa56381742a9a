import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { onTimeAxis } from './history.ts'
import { somePoint } from './testing/some-metrics.ts'

describe('the history on its axis', () => {
  it('has the most of each stretch at its time, and nothing where there is no point', () => {
    const history = [somePoint(0), somePoint(1, { cpuPercentMax: null }), somePoint(4, { cpuPercentMax: 7 })]
    expect(onTimeAxis(history, 'cpu')).toEqual([100, 50, null, null, 7])
    expect(onTimeAxis([], 'cpu')).toEqual([])
  })

  it('has no holes where stretches follow each other, however long they are', () => {
    const spans = fc.array(fc.integer({ min: 900, max: 1_100 }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(spans, (given) => {
        let at = Date.parse('2026-01-01T00:00:00Z')
        const first = somePoint(0, { spanMs: 0, cpuPercent: null, cpuPercentMax: null })
        const rest = given.map((spanMs, i) => {
          const point = somePoint(0, { at: new Date(at).toISOString(), spanMs, cpuPercentMax: i })
          at += spanMs
          return point
        })
        const values = onTimeAxis([first, ...rest], 'cpu')
        expect([values.includes(null), Math.max(...values.map(Number))]).toEqual([false, given.length - 1])
      }),
    )
  })

  it('is bounded, whatever times a server tells', () => {
    const far = somePoint(0, { at: '2030-01-01T00:00:00.000Z' })
    expect(onTimeAxis([somePoint(0), far], 'pids').length).toBeLessThanOrEqual(2_000)
    expect(onTimeAxis([far, somePoint(0)], 'pids').length).toBeLessThanOrEqual(2_000)
  })
})
