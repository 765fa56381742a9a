import { expect, it } from 'vitest'
import { Readiness } from './readiness.ts'

it('a store that does not answer is named before the evidence, which needs it', () => {
  const lease = { isHeld: true, isAnswered: false }
  const readiness = new Readiness(lease)
  readiness.serve()
  readiness.setEvidence('unavailable')
  expect(readiness.reason).toBe('store_unavailable')
  lease.isAnswered = true
  expect(readiness.reason).toBe('evidence_unavailable')
})

it('a chain is in one state, and only the first change to it is new', () => {
  const readiness = new Readiness({ isHeld: true, isAnswered: true })
  const states = ['waiting', 'waiting', 'broken', 'broken', 'waiting', 'good', 'good'] as const
  expect(states.map((state) => readiness.setChain('acme', state))).toEqual([
    true,
    false,
    true,
    false,
    true,
    true,
    false,
  ])
  expect(readiness.brokenChains).toBe(0)
})
