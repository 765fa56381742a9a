import { expect, it } from 'vitest'
import { TokenBucket } from './token-bucket.ts'

it('lets a burst through at once, then its rate, and says when there is one again', () => {
  let now = 0
  const bucket = new TokenBucket({ burst: 3, perSecond: 2 }, () => now)
  const take = (count: number) => Array.from({ length: count }, () => bucket.take())
  expect(take(5)).toEqual([0, 0, 0, 0.5, 0.5])
  now = 250
  expect(take(1)).toEqual([0.25])
  now = 1000
  expect(take(3)).toEqual([0, 0, 0.5])
})

it('saves no more than a burst', () => {
  let now = 0
  const bucket = new TokenBucket({ burst: 2, perSecond: 2 }, () => now)
  now = 1_000_000
  expect([bucket.take(), bucket.take(), bucket.take()]).toEqual([0, 0, 0.5])
})
