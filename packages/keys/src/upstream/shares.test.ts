import { expect, it } from 'vitest'
import { type Holder, Shares } from './shares.ts'

const A1: Holder = { tenant: 'a', sandbox: '1' }
const A2: Holder = { tenant: 'a', sandbox: '2' }
const B1: Holder = { tenant: 'b', sandbox: '3' }

function takeAll(shares: Shares, holder: Holder): number {
  let taken = 0
  while (shares.take(holder)) taken += 1
  return taken
}

it('one sandbox leaves calls to its neighbours, and one tenant to other tenants', () => {
  const shares = new Shares(64)
  expect([A1, A2, B1].map((holder) => takeAll(shares, holder))).toEqual([16, 8, 10])
  shares.give(A2)
  expect(takeAll(shares, A2)).toBe(0)
  for (let i = 0; i < 10; i += 1) shares.give(B1)
  expect(takeAll(shares, A2)).toBe(1)
})

it('a whole of one can be used, by one at a time', () => {
  const shares = new Shares(1)
  expect([A1, A2, B1].map((holder) => shares.take(holder))).toEqual([true, false, false])
  shares.give(A1)
  expect(shares.take(B1)).toBe(true)
})
