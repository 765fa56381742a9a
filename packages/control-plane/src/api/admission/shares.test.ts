import { describe, expect, it } from 'vitest'
import { type Holder, Shares } from './shares.ts'

const holder = (tenant: string, actor = 'key'): Holder => ({ tenant, actor })

function takeAll(shares: Shares, who: Holder): number {
  let count = 0
  while (shares.take(who) === undefined) count += 1
  return count
}

describe('shares of a whole', () => {
  it('give a tenant half of what others leave, and a caller half of what others of its tenant leave', () => {
    const shares = new Shares(64)
    expect([takeAll(shares, holder('acme', 'a')), shares.take(holder('acme', 'a'))]).toEqual([16, 'caller'])
    expect([takeAll(shares, holder('acme', 'b')), takeAll(shares, holder('acme', 'c'))]).toEqual([8, 4])
    expect(takeAll(shares, holder('other'))).toBe(9)
  })

  it('keep a tenant of many callers to half', () => {
    const shares = new Shares(64)
    const callers = Array.from({ length: 100 }, (_, at) => holder('acme', `key ${at}`))
    const taken = callers.reduce((sum, caller) => sum + takeAll(shares, caller), 0)
    expect(taken).toBeLessThanOrEqual(32)
    expect(takeAll(shares, holder('other'))).toBeGreaterThanOrEqual(8)
  })

  it('are free again when they are given back', () => {
    const shares = new Shares(64)
    takeAll(shares, holder('acme'))
    shares.give(holder('acme'), 16)
    expect(takeAll(shares, holder('acme'))).toBe(16)
  })

  it('refuse an amount whole, and name the bound', () => {
    const shares = new Shares(64)
    expect([shares.take(holder('acme'), 33), shares.take(holder('acme'), 17), shares.take(holder('acme'), 16)]).toEqual(
      ['tenant', 'caller', undefined],
    )
  })

  it('know who holds more, the largest first: of other tenants, then of the same', () => {
    const shares = new Shares(1000)
    const amounts = [
      [holder('big', 'a'), 20],
      [holder('big', 'b'), 30],
      [holder('bigger', 'a'), 60],
      [holder('own', 'small'), 2],
      [holder('own', 'large'), 10],
      [holder('little', 'a'), 12],
    ] as const
    for (const [who, amount] of amounts) expect(shares.take(who, amount)).toBeUndefined()
    const others = [holder('bigger', 'a'), holder('big', 'b'), holder('big', 'a')]
    expect(shares.largerThan(holder('own', 'small'))).toEqual([...others, holder('own', 'large')])
    expect(shares.largerThan(holder('own', 'large'))).toEqual(others)
    expect(shares.largerThan(holder('bigger', 'a'))).toEqual([])
  })
})
