import fc from 'fast-check'
import type { AlertLevel, Threshold } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { afterSample, HYSTERESIS, levelOf, standingAt, type ThresholdRule } from './thresholds.ts'

interface Sample {
  readonly percent: number | null
  readonly isPaused: boolean
}

const RULE: ThresholdRule = { threshold: { warning: 70, critical: 90 }, sustained: 3 }

function levels(samples: readonly Sample[], rule = RULE, first: AlertLevel | null = null): (AlertLevel | null)[] {
  let standing = standingAt(first)
  return samples.map((sample) => {
    standing = afterSample(standing, sample, rule)
    return levelOf(standing)
  })
}

const running = (percents: readonly (number | null)[]): Sample[] =>
  percents.map((percent) => ({ percent, isPaused: false }))
const paused = (percents: readonly number[]): Sample[] => percents.map((percent) => ({ percent, isPaused: true }))

describe('a threshold', () => {
  it('is reached by samples in a row, and left by as many below it by more than the hysteresis', () => {
    expect(levels(running([70, 70, 70, 64.9, 64.9, 64.9]))).toEqual([null, null, 'warning', 'warning', 'warning', null])
  })

  it('escalates, comes down to a warning, and clears', () => {
    const samples = running([95, 95, 95, 80, 80, 80, 10, 10, 10])
    expect(levels(samples)).toEqual([
      null,
      null,
      'critical',
      'critical',
      'critical',
      'warning',
      'warning',
      'warning',
      null,
    ])
  })

  it('is not changed by what trembles around it, nor by a row that is broken', () => {
    expect(levels(running([71, 69, 71, 69, 71, 69]))).toEqual([null, null, null, null, null, null])
    expect(levels(running([64, 64, 66, 64, 64, 71]), RULE, 'warning')).toEqual(Array(6).fill('warning'))
  })

  it('goes on with its row after samples that could not be taken', () => {
    expect(levels(running([70, null, 70, null, null, 70]))).toEqual([null, null, null, null, null, 'warning'])
  })

  it('is not reached by what is paused, but may be left by it', () => {
    expect(levels([...running([95, 95]), ...paused([95, 95, 95])])).toEqual(Array(5).fill(null))
    expect(levels(paused([0, 0, 0]), RULE, 'critical')).toEqual(['critical', 'critical', null])
  })

  it('does in every order of samples what looking back over all of them says', () => {
    fc.assert(
      fc.property(rules, samplesNearThresholds, firsts, (rule, samples, first) => {
        expect(levels(samples, rule, first)).toEqual(naive(samples, rule, first))
      }),
      { numRuns: 1000 },
    )
  })
})

const percent = fc.oneof(
  fc.constant(null),
  fc.integer({ min: 0, max: 110 }),
  // Where it matters.
  fc.constantFrom(44.9, 45, 50, 64.9, 65, 69.9, 70, 84.9, 85, 89.9, 90),
)
/** Rows of the same, for others change little. */
const samplesNearThresholds = fc
  .array(fc.tuple(fc.record({ percent, isPaused: fc.boolean() }), fc.integer({ min: 1, max: 5 })), { maxLength: 30 })
  .map((rows) => rows.flatMap(([sample, times]) => Array<Sample>(times).fill(sample)))

const firsts = fc.constantFrom<AlertLevel | null>(null, 'warning', 'critical')

const rules = fc.record({
  threshold: fc.constantFrom<Threshold>(
    { warning: 70, critical: 90 },
    { warning: 50, critical: 50 },
    { warning: 65, critical: 70 },
  ),
  sustained: fc.integer({ min: 1, max: 4 }),
})

/** The level after each sample, by looking back from it for the last row that decided something. */
function naive(samples: readonly Sample[], rule: ThresholdRule, first: AlertLevel | null): (AlertLevel | null)[] {
  return samples.map((_, end) => {
    const seen = samples.slice(0, end + 1).filter(({ percent }) => percent !== null)
    const isOn = (at: number, wasOn: boolean) => {
      for (let last = seen.length; last >= rule.sustained; last--) {
        const row = seen.slice(last - rule.sustained, last)
        if (row.every(({ percent, isPaused }) => !isPaused && (percent ?? 0) >= at)) return true
        if (row.every(({ percent }) => (percent ?? 0) < at - HYSTERESIS)) return false
      }
      return wasOn
    }
    if (isOn(rule.threshold.critical, first === 'critical')) return 'critical'
    return isOn(rule.threshold.warning, first !== null) ? 'warning' : null
  })
}
