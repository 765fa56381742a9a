import { expect, it } from 'vitest'
import { parseTraffic, share } from './disk-meter.ts'

it('reads sectors read and written out of the statistics of a block device', () => {
  const stat =
    '   43688      343   368260    15781    73144    24501 19625286   148093        0    67020   201490        0\n'
  expect([stat, undefined].map(parseTraffic)).toEqual([
    { read: 368_260, written: 19_625_286 },
    { read: 0, written: 0 },
  ])
})

it('tells shares in percent with one decimal, also of what has no size', () => {
  expect([share(1, 3), share(5, 5), share(0, 0)]).toEqual([33.3, 100, 0])
})
