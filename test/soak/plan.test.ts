import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agentOf, Plan, type Round, VICTIMS } from './plan.ts'
import { Random } from './random.ts'

const seeds = fc.nat()

describe('a plan', () => {
  it('is the same for the same seed, however often it is made', () => {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 1, max: 8 }), (seed, lanes) => {
        const [one, other] = [new Plan({ seed, lanes }), new Plan({ seed, lanes })]
        expect(roundsOf(one, 12)).toEqual(roundsOf(other, 12))
        expect(one.hash).toBe(other.hash)
      }),
    )
  })

  it('is another for another seed', () => {
    const hashes = Array.from({ length: 50 }, (_, seed) => {
      const plan = new Plan({ seed, lanes: 4 })
      roundsOf(plan, 3)
      return plan.hash
    })
    expect(new Set(hashes).size).toBe(50)
  })

  it('begins every lane with something to have, and never asks nothing of a sandbox', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const [first] = roundsOf(new Plan({ seed, lanes: 6 }), 1)
        for (const operations of first?.lanes ?? []) expect(['create', 'begin']).toContain(operations[0]?.do)
      }),
    )
  })

  it('has every operation and every blow within a few hundred rounds', () => {
    const rounds = roundsOf(new Plan({ seed: 1, lanes: 6 }), 300)
    const done = new Set(rounds.flatMap(({ lanes }) => lanes.flat()).map((operation) => operation.do))
    const wanted = ['create', 'begin', 'open', 'load', 'step', 'close', 'pause', 'resume', 'file', 'look', 'measure']
    expect([...done].toSorted()).toEqual([...wanted, 'relimit', 'kill', 'terminate'].toSorted())
    const blows = rounds.flatMap((round) => round.blows)
    const victims = new Set(blows.flatMap((blow) => (blow.blow === 'sigkill' ? [blow.victim] : [])))
    expect([...victims].toSorted()).toEqual(VICTIMS.toSorted())
    expect(new Set(blows.map(({ blow }) => blow))).toEqual(new Set(['sigkill', 'kill-agent', 'restart']))
  })

  it('has no blows when it is calm', () => {
    const rounds = roundsOf(new Plan({ seed: 1, lanes: 6, calm: true }), 100)
    expect(rounds.flatMap(({ blows }) => blows)).toEqual([])
  })

  it('begins anew in lanes whose agent was killed', () => {
    const rounds = roundsOf(new Plan({ seed: 3, lanes: 6 }), 300)
    const killed = rounds.flatMap(({ number, blows }) =>
      blows.flatMap((blow) => (blow.blow === 'kill-agent' ? [{ next: rounds[number + 1], agent: blow.agent }] : [])),
    )
    expect(killed.length).toBeGreaterThan(0)
    for (const { next, agent } of killed)
      for (const [lane, operations] of next?.lanes.entries() ?? [])
        if (agentOf(lane) === agent) expect(['create', 'begin']).toContain(operations[0]?.do)
  })
})

describe('random numbers', () => {
  it('are even, and within bounds', () => {
    const random = new Random('even')
    const counts = Array.from({ length: 10 }, () => 0)
    for (let n = 0; n < 10_000; n++) {
      const at = random.below(10)
      counts[at] = (counts[at] ?? Number.NaN) + 1
    }
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(150)
  })

  it('never choose what has no weight', () => {
    const random = new Random('weights')
    const chosen = Array.from({ length: 1000 }, () =>
      random.weighted([
        ['never', 0],
        ['often', 3],
        ['seldom', 1],
      ] as const),
    )
    expect(new Set(chosen)).toEqual(new Set(['often', 'seldom']))
  })
})

function roundsOf(plan: Plan, count: number): readonly Round[] {
  return Array.from({ length: count }, () => plan.next())
}
