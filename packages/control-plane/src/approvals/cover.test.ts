import type { Decision, MatchedRule } from '@airlock/contract'
import { expect, it } from 'vitest'
import { covers } from './cover.ts'

const rule = (of: Partial<MatchedRule> = {}): MatchedRule => ({
  policy: 'house',
  rule: 'a',
  effect: 'ask',
  risk: 'low',
  reason: 'Because.',
  ...of,
})
const decision = (rules: readonly MatchedRule[], of: Partial<Decision> = {}): Decision => ({
  effect: 'ask',
  risk: 'low',
  conditions: {},
  policyVersion: 'house@1',
  rules: [...rules],
  ...of,
})

it.each<readonly [string, Decision, Decision, boolean]>([
  ['the same', decision([rule()]), decision([rule()]), true],
  ['the same by a newer policy', decision([rule()]), decision([rule()], { policyVersion: 'house@2' }), true],
  ['less', decision([rule(), rule({ rule: 'b' })]), decision([rule()]), true],
  ['more that allows', decision([rule()]), decision([rule(), rule({ rule: 'b', effect: 'allow' })]), true],
  ['another rule that asks', decision([rule()]), decision([rule(), rule({ rule: 'b' })]), false],
  ['the same rule for another reason', decision([rule()]), decision([rule({ reason: 'Other.' })]), false],
  ['the same rule of another policy', decision([rule()]), decision([rule({ policy: 'other' })]), false],
  ['a higher risk', decision([rule()]), decision([rule()], { risk: 'high' }), false],
  ['a denial', decision([rule()]), decision([rule()], { effect: 'deny' }), false],
  ['the default, when the default asked', decision([]), decision([]), true],
  ['the default, when a rule asked', decision([rule()]), decision([]), false],
])('an approval covers %s, or not', (_, seen, now, expected) => {
  expect(covers(seen, now)).toBe(expected)
})
