import type { MetricSample } from '@airlock/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Tally } from '../store/metrics.ts'
import { addTallies, cpuPercentOf, joinSampled, toPoint, toSampled } from './tally.ts'
import { aSample } from './testing/observed.ts'

const at = (ms: number) => new Date(1_700_000_000_000 + ms).toISOString()

/** A sandbox from its start: counters that only grow, and gauges that do what they like. */
const samples = fc
  .array(
    fc.record({
      afterMs: fc.integer({ min: 1, max: 60_000 }),
      cpuMs: fc.integer({ min: 0, max: 500_000 }),
      writtenBytes: fc.nat(2 ** 40),
      memoryBytes: fc.nat(2 ** 40),
      pids: fc.nat(32_768),
    }),
    { minLength: 1, maxLength: 50 },
  )
  .map((steps) => {
    let [ms, cpuMs, writtenBytes] = [0, 0, 0]
    return steps.map((step): MetricSample => {
      ms += step.afterMs
      cpuMs += step.cpuMs
      writtenBytes += step.writtenBytes
      return aSample({ at: at(ms), cpuMs, writtenBytes, memoryBytes: step.memoryBytes, pids: step.pids })
    })
  })

const tallies = (all: readonly MetricSample[]): readonly Tally[] =>
  all.map((one, i) => toSampled(one, all[i - 1]).tally)

describe('a tally', () => {
  it('is the same however samples are put together', () => {
    fc.assert(
      fc.property(samples, fc.nat(50), (all, cut) => {
        const each = tallies(all)
        const [head, tail] = [each.slice(0, cut), each.slice(cut)]
        const whole = each.reduce(addTallies)
        if (head.length === 0 || tail.length === 0) return
        expect(addTallies(head.reduce(addTallies), tail.reduce(addTallies))).toEqual(whole)
      }),
    )
  })

  it('says what the kernel counted from the first sample to the last, and averages between the least and the most', () => {
    fc.assert(
      fc.property(samples, (all) => {
        const [first, last] = [all[0] ?? aSample(), all.at(-1) ?? aSample()]
        const point = toPoint(tallies(all).reduce(addTallies), { at: 0, spanMs: 1 })
        const memory = all.map((one) => one.memoryBytes ?? 0)
        expect(point).toMatchObject({
          samples: all.length,
          writtenBytes: all.length === 1 ? null : (last.writtenBytes ?? 0) - (first.writtenBytes ?? 0),
          memoryBytesMax: Math.max(...memory),
          memoryBytes: Math.round(memory.reduce((a, b) => a + b) / all.length),
          pidsMax: Math.max(...all.map((one) => one.pids ?? 0)),
        })
        if (all.length === 1) expect([point.cpuPercent, point.cpuPercentMax]).toEqual([null, null])
        else expect(point.cpuPercent).toBeLessThanOrEqual((point.cpuPercentMax ?? 0) + 0.01)
      }),
    )
  })

  it('does not take what a sample cannot tell for nothing', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(2 ** 40)), { minLength: 1, maxLength: 30 }), (gauges) => {
        const each = tallies(gauges.map((memoryBytes, i) => aSample({ at: at(i), memoryBytes })))
        const { memoryBytes } = toPoint(each.reduce(addTallies), { at: 0, spanMs: 1 })
        const told = gauges.filter((one) => one !== null)
        expect(memoryBytes === null).toBe(told.length === 0)
        if (memoryBytes === null) return
        expect(memoryBytes).toBeGreaterThanOrEqual(Math.min(...told) - 1)
        expect(memoryBytes).toBeLessThanOrEqual(Math.max(...told) + 1)
      }),
    )
  })

  it('counts 100 percent for one processor', () => {
    const [before, now] = [aSample({ at: at(0), cpuMs: 10_000 }), aSample({ at: at(4000), cpuMs: 16_000 })]
    expect(cpuPercentOf(toSampled(now, before))).toBe(150)
    expect(cpuPercentOf(toSampled(now, undefined))).toBeNull()
  })

  it('does not take a counter or a clock that goes back for use', () => {
    const [before, now] = [aSample({ at: at(0), cpuMs: 10_000 }), aSample({ at: at(4000), cpuMs: 5 })]
    expect(toSampled(now, before).tally.cpuMs).toBe(0)
    expect(toSampled(before, now).tally).toMatchObject({ countedMs: 0, cpuMs: null, writtenBytes: null })
  })
})

describe('sandboxes of one round', () => {
  it('are added, and their maxima are those of the sum', () => {
    const one = toSampled(
      aSample({ at: at(1000), cpuMs: 500, memoryBytes: 10, pids: 1, diskBytes: 7 }),
      aSample({ at: at(0) }),
    )
    const two = toSampled(
      aSample({ at: at(1010), cpuMs: 300, memoryBytes: 20, pids: 2, diskBytes: null }),
      aSample({ at: at(10) }),
    )
    const fresh = toSampled(aSample({ at: at(1005), cpuMs: 99, memoryBytes: 5, pids: 1, diskBytes: 1 }), undefined)
    expect(joinSampled([one, two, fresh])).toEqual({
      at: 1_700_000_001_010,
      tally: {
        samples: 1,
        countedMs: 1000,
        cpuMs: 800,
        cpuMax: 8000,
        memorySum: 35,
        memoryMax: 35,
        pidsSum: 4,
        pidsMax: 4,
        diskSum: 8,
        throttledMs: 0,
        readBytes: 0,
        writtenBytes: 0,
        oomKills: 0,
      },
    })
  })
})
