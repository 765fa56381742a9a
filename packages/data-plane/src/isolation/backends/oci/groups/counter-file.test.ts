import { describe, expect, it } from 'vitest'
import { keyedIn, numberIn, pressureIn } from './counter-file.ts'

/** As the kernel writes them. */
const CPU_STAT_V2 = `usage_usec 8123456
user_usec 6000000
system_usec 2123456
nice_usec 0
core_sched.force_idle_usec 0
nr_periods 120
nr_throttled 17
throttled_usec 910233
nr_bursts 0
burst_usec 0
`
const CPU_STAT_V1 = `nr_periods 41
nr_throttled 12
throttled_time 2204518331
nr_bursts 0
burst_time 0
`
const MEMORY_EVENTS = `low 0
high 0
max 62
oom 3
oom_kill 2
oom_group_kill 0
`
const OOM_CONTROL = `oom_kill_disable 0
under_oom 0
oom_kill 5
`
const PRESSURE = `some avg10=12.34 avg60=8.42 avg300=6.74 total=19459869613
full avg10=0.50 avg60=0.00 avg300=0.00 total=0
`

describe('what the kernel has counted', () => {
  it('is one number, or none where the kernel says "max"', () => {
    expect(['734003200\n', '0\n', 'max\n', undefined].map(numberIn)).toEqual([734_003_200, 0, null, null])
  })

  it('is found by its key in counters of both versions', () => {
    expect({
      usage: keyedIn(CPU_STAT_V2, 'usage_usec'),
      throttled: keyedIn(CPU_STAT_V2, 'throttled_usec'),
      throttledTime: keyedIn(CPU_STAT_V1, 'throttled_time'),
      kills: keyedIn(MEMORY_EVENTS, 'oom_kill'),
      killsOfV1: keyedIn(OOM_CONTROL, 'oom_kill'),
      refused: keyedIn('max 7\n', 'max'),
      refusedOfLaterKernels: keyedIn('max 7\nmax.imposed 9\n', 'max'),
    }).toEqual({
      usage: 8_123_456,
      throttled: 910_233,
      throttledTime: 2_204_518_331,
      kills: 2,
      killsOfV1: 5,
      refused: 7,
      refusedOfLaterKernels: 7,
    })
  })

  it('is never taken from a key that only begins or ends like the one that was asked for', () => {
    expect([
      keyedIn(MEMORY_EVENTS, 'oom'),
      keyedIn(MEMORY_EVENTS, 'kill'),
      keyedIn('usage_usec_more 3\n', 'usage_usec'),
      keyedIn('low 0\n', 'oom_kill'),
      keyedIn('', 'max'),
      keyedIn(undefined, 'max'),
    ]).toEqual([3, null, null, null, null, null])
  })

  it('is the share of the last ten seconds in which something waited', () => {
    expect([PRESSURE, '', undefined].map(pressureIn)).toEqual([12.34, null, null])
  })
})
