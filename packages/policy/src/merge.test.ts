import { EFFECTS, RISKS, type Decision } from '@airlock/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalRules, joinVersions, mergeDecisions } from './merge.ts'

const rule = fc.record({
  policy: fc.constantFrom('builtin', 'house', 'opa'),
  rule: fc.constantFrom('a', 'b', 'c'),
  effect: fc.constantFrom(...EFFECTS),
  risk: fc.constantFrom(...RISKS),
  reason: fc.constantFrom('x', 'y'),
})
const conditions = fc.record(
  {
    maxTimeoutMs: fc.integer({ min: 1, max: 5 }),
    readOnly: fc.constant(true as const),
    tier: fc.constant('strict' as const),
  },
  { requiredKeys: [] },
)
const decision: fc.Arbitrary<Decision> = fc.record({
  effect: fc.constantFrom(...EFFECTS),
  risk: fc.constantFrom(...RISKS),
  rules: fc.array(rule, { maxLength: 4 }).map((rules) => canonicalRules(rules)),
  conditions,
  policyVersion: fc.array(fc.constantFrom('builtin@1', 'house@7', 'house@8'), { maxLength: 3 }).map(joinVersions),
})

describe('decisions that are merged', () => {
  it('do not depend on their order', () => {
    fc.assert(
      fc.property(decision, decision, (a, b) => {
        expect(mergeDecisions(a, b)).toEqual(mergeDecisions(b, a))
      }),
    )
  })

  it('do not depend on how they are grouped', () => {
    fc.assert(
      fc.property(decision, decision, decision, (a, b, c) => {
        expect(mergeDecisions(mergeDecisions(a, b), c)).toEqual(mergeDecisions(a, mergeDecisions(b, c)))
      }),
    )
  })

  it('do not depend on how often one is there', () => {
    fc.assert(
      fc.property(decision, (a) => {
        expect(mergeDecisions(a, a)).toEqual(a)
      }),
    )
  })

  it('are never weaker than any of them', () => {
    fc.assert(
      fc.property(decision, decision, (a, b) => {
        const merged = mergeDecisions(a, b)
        for (const part of [a, b]) {
          expect(EFFECTS.indexOf(merged.effect)).toBeGreaterThanOrEqual(EFFECTS.indexOf(part.effect))
          expect(RISKS.indexOf(merged.risk)).toBeGreaterThanOrEqual(RISKS.indexOf(part.risk))
          expect(merged.rules).toEqual(expect.arrayContaining(part.rules))
          expect(merged.conditions.maxTimeoutMs ?? Infinity).toBeLessThanOrEqual(
            part.conditions.maxTimeoutMs ?? Infinity,
          )
          if (part.conditions.readOnly === true) expect(merged.conditions.readOnly).toBe(true)
          if (part.conditions.tier === 'strict') expect(merged.conditions.tier).toBe('strict')
        }
      }),
    )
  })

  it('keep the strictest of everything, each rule once, the strictest first', () => {
    const asks = { policy: 'house', rule: 'b', effect: 'ask', risk: 'low', reason: 'x' } as const
    const denies = { policy: 'opa', rule: 'a', effect: 'deny', risk: 'high', reason: 'y' } as const
    expect(
      mergeDecisions(
        { effect: 'ask', risk: 'high', rules: [asks], conditions: { maxTimeoutMs: 5 }, policyVersion: 'house@7' },
        {
          effect: 'deny',
          risk: 'low',
          rules: [denies, asks],
          conditions: { maxTimeoutMs: 3, readOnly: true, tier: 'strict' },
          policyVersion: 'builtin@1,house@7',
        },
      ),
    ).toEqual({
      effect: 'deny',
      risk: 'high',
      rules: [denies, asks],
      conditions: { maxTimeoutMs: 3, readOnly: true, tier: 'strict' },
      policyVersion: 'builtin@1,house@7',
    })
  })
})
