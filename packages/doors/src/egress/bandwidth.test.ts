import { expect, it } from 'vitest'
import { Bandwidth } from './bandwidth.ts'

it('lets a tenth of a second through at once, and then makes wait for as long as the bytes take', () => {
  let now = 0
  const bandwidth = new Bandwidth(8_000_000, () => now)
  expect(bandwidth.spend(100_000)).toBe(0)
  expect(bandwidth.spend(50_000)).toBe(50)
  now = 50
  expect(bandwidth.spend(1000)).toBe(1)
})

it('never exceeds its rate over time, however the bytes come', () => {
  let now = 0
  const bandwidth = new Bandwidth(8_000_000, () => now)
  let sent = 0
  while (now < 10_000) {
    const wait = bandwidth.spend(64 * 1024)
    sent += 64 * 1024
    now += wait
    if (wait === 0) now += 1
  }
  expect(sent).toBeLessThanOrEqual(10_000_000 + 100_000 + 64 * 1024)
  expect(sent).toBeGreaterThanOrEqual(9_900_000)
})

it('gives back no more than its burst after a silence', () => {
  let now = 0
  const bandwidth = new Bandwidth(8_000_000, () => now)
  now = 60_000
  expect(bandwidth.spend(100_000)).toBe(0)
  expect(bandwidth.spend(1000)).toBe(1)
})
