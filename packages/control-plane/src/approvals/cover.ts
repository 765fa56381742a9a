import { type Decision, type MatchedRule, RISKS } from '@airlock/contract'
import { isDeepStrictEqual } from 'node:util'

/**
 * Whether who approved `seen` saw all that asks now: every rule that asks, word for word, and no higher risk. A policy may have
 * changed otherwise; what it asks for anew is asked anew.
 */
export function covers(seen: Decision, now: Decision): boolean {
  if (now.effect === 'deny' || RISKS.indexOf(now.risk) > RISKS.indexOf(seen.risk)) return false
  const known = asking(seen)
  const asks = asking(now)
  // No rule asks: the default does.
  if (asks.length === 0) return known.length === 0
  return asks.every((rule) => known.some((other) => isDeepStrictEqual(other, rule)))
}

function asking({ rules }: Decision): readonly MatchedRule[] {
  return rules.filter(({ effect }) => effect === 'ask')
}
