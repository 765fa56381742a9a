import { expect, it } from 'vitest'
import { quantile, round, summarize } from './statistics.ts'

it('summarizes samples in any order', () => {
  const samples = Array.from({ length: 101 }, (_, index) => 100 - index)
  expect(summarize(samples)).toEqual({ count: 101, p50: 50, p95: 95, p99: 99, min: 0 })
})

it('takes the value between two samples where no sample is in the middle', () => {
  expect(quantile([4, 1], 0.5)).toBe(2.5)
  expect(quantile([7], 0.95)).toBe(7)
})

it('rounds to what a measurement is worth', () => {
  expect([0, 0.123456, 12.3456, 123.456, 12_345.6].map(round)).toEqual([0, 0.123, 12.3, 123, 12_350])
})
