import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compactBytes,
  durationWithin,
  formatBytes,
  formatDuration,
  formatPercent,
  numberWithin,
  parseDuration,
  parseSize,
  sizeWithin,
} from './units.ts'

describe('sizes', () => {
  it('are read as people write them', () => {
    expect(['4096', '512m', '1g', '1.5G', '64KiB', '2tb'].map(parseSize)).toEqual([
      4096,
      512 * 1024 ** 2,
      1024 ** 3,
      1.5 * 1024 ** 3,
      65_536,
      2 * 1024 ** 4,
    ])
  })

  it('refuse everything else', () => {
    for (const text of ['', '-1', 'm', '1x', '1 g', '0x10', '1e9']) expect(() => parseSize(text)).toThrow('Use a size')
  })

  it('are shown in the largest unit that fits', () => {
    expect([0, 1023, 1024, 1536, 512 * 1024 ** 2].map(formatBytes)).toEqual([
      '0 B',
      '1023 B',
      '1 KiB',
      '1.5 KiB',
      '512 MiB',
    ])
  })
})

describe('bounds', () => {
  const duration = durationWithin({ min: 1, max: 24 * 3_600_000 })

  it('let through what is within', () => {
    expect([duration('1ms'), duration('24h'), sizeWithin({ min: 1, max: 1024 })('1k')]).toEqual([1, 86_400_000, 1024])
    expect(numberWithin({ min: 0.1, max: 2 })('0.5')).toBe(0.5)
  })

  it.each([
    ['0', 'From 1ms to 24h is possible.'],
    ['2d', 'From 1ms to 24h is possible.'],
    ['none', 'From 1ms to 24h is possible.'],
    ['soon', 'Use a duration like 90s or 10m.'],
  ])('refuse the duration %s', (text, words) => expect(() => duration(text)).toThrow(words))

  it('refuse other sizes and numbers, with what is possible', () => {
    const size = sizeWithin({ min: 64 * 1024 ** 2, max: 1024 ** 3 })
    expect(() => size('2000')).toThrow('It is 2000 bytes, and 64 MiB to 1 GiB are possible.')
    expect(() => numberWithin({ min: 0.1, max: 256 })('0')).toThrow('From 0.1 to 256 is possible.')
  })
})

describe('where there is little room', () => {
  it('sizes are rounded', () => {
    const sizes = [0, 999, 1000, 1024, 1536, 10_240, 1000 * 1024, 512 * 1024 ** 2, 2 * 1024 ** 3, 5000 * 1024 ** 4]
    expect(sizes.map(compactBytes)).toEqual(['0B', '999B', '1K', '1K', '1.5K', '10K', '1M', '512M', '2G', '5000T'])
  })

  it('sizes below a thousand of the largest unit take at most four characters', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999 * 1024 ** 4 }), (bytes) => {
        expect(compactBytes(bytes)).toMatch(/^(?:\d{1,3}|\d\.\d)[BKMGT]$/)
      }),
    )
  })

  it('shares are whole percents, but small ones', () => {
    expect([0, 0.04, 0.4, 9.94, 9.96, 87.4, 312, null].map(formatPercent)).toEqual([
      '0%',
      '0%',
      '0.4%',
      '9.9%',
      '10%',
      '87%',
      '312%',
      '-',
    ])
  })
})

describe('durations', () => {
  it('are read as people write them, a bare number as seconds', () => {
    expect(['90', '90s', '10m', '1h30m', '250ms', '1.5h', '2d'].map(parseDuration)).toEqual([
      90_000, 90_000, 600_000, 5_400_000, 250, 5_400_000, 172_800_000,
    ])
  })

  it('refuse everything else', () => {
    for (const text of ['', '-1s', 'm', '1x', '1 h']) expect(() => parseDuration(text)).toThrow('Use a duration')
  })

  it('are shown with two units at most', () => {
    expect([0, 42_000, 3_900_000, 90_061_000].map(formatDuration)).toEqual(['0s', '42s', '1h 5m', '1d 1h'])
  })

  it('read back as they are shown, for whole minutes of less than a day', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1439 }), (minutes) => {
        expect(parseDuration(formatDuration(minutes * 60_000).replace(' ', ''))).toBe(minutes * 60_000)
      }),
    )
  })
})
