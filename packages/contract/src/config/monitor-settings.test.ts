import { describe, expect, it } from 'vitest'
import { parseConfig } from './config.ts'
import { parseEndedFor, parseThreshold } from './monitor-settings.ts'

describe('thresholds', () => {
  it.each([
    ['70/90', { warning: 70, critical: 90 }],
    ['100/100', { warning: 100, critical: 100 }],
    ['off', null],
  ])('are read from %s', (text, threshold) => {
    expect(parseThreshold(text)).toEqual(threshold)
    expect(parseConfig({ monitor_disk: text }, {}).monitor_disk).toBe(text)
  })

  it.each(['', '90', '90/70', '9/50', '70/101', '70/90/95', '70.5/90', 'on', '-70/90'])(
    'are not read from "%s"',
    (text) => {
      expect(() => parseConfig({}, { AIRLOCK_MONITOR_CPU: text })).toThrow('monitor_cpu')
    },
  )
})

describe('what ends a sandbox', () => {
  it.each([
    ['none', []],
    ['pids', ['pids']],
    ['cpu, oom,cpu', ['cpu', 'oom']],
    [parseConfig({}, {}).monitor_kill, ['pids', 'oom', 'disk', 'cpu']],
  ])('is read from "%s"', (text, ends) => {
    expect(parseEndedFor(text)).toEqual(ends)
  })

  it.each(['', 'all', 'pids,', 'none,pids'])('is not read from "%s"', (text) => {
    expect(() => parseConfig({}, { AIRLOCK_MONITOR_KILL: text })).toThrow('monitor_kill')
  })
})
