import {
  EFFECTS,
  RISKS,
  type Conditions,
  type Decision,
  type Effect,
  type MatchedRule,
  type Risk,
} from '@airlock/contract'

/** The stricter of both in everything. It does not matter in which order or how often decisions are merged. */
export function mergeDecisions(a: Decision, b: Decision): Decision {
  return {
    effect: stricter(a.effect, b.effect),
    risk: riskier(a.risk, b.risk),
    rules: canonicalRules([...a.rules, ...b.rules]),
    conditions: mergeConditions(a.conditions, b.conditions),
    policyVersion: joinVersions([...a.policyVersion.split(','), ...b.policyVersion.split(',')]),
  }
}

export function stricter(a: Effect, b: Effect): Effect {
  return EFFECTS.indexOf(a) >= EFFECTS.indexOf(b) ? a : b
}

export function riskier(a: Risk, b: Risk): Risk {
  return RISKS.indexOf(a) >= RISKS.indexOf(b) ? a : b
}

export function mergeConditions(a: Conditions, b: Conditions): Conditions {
  const maxTimeoutMs = Math.min(a.maxTimeoutMs ?? Infinity, b.maxTimeoutMs ?? Infinity)
  return {
    ...(maxTimeoutMs === Infinity ? {} : { maxTimeoutMs }),
    ...(a.readOnly === true || b.readOnly === true ? { readOnly: true } : {}),
    ...(a.tier === 'strict' || b.tier === 'strict' ? { tier: 'strict' } : {}),
  }
}

/** The strictest first, then by name; each once. */
export function canonicalRules(rules: readonly MatchedRule[]): MatchedRule[] {
  if (rules.length < 2) return [...rules]
  const byKey = new Map(rules.map((rule) => [keyOf(rule), rule]))
  return [...byKey.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, rule]) => rule)
}

export function joinVersions(versions: readonly string[]): string {
  return [...new Set(versions)]
    .filter((version) => version !== '')
    .sort()
    .join(',')
}

function keyOf(rule: MatchedRule): string {
  const strictness = EFFECTS.length - EFFECTS.indexOf(rule.effect)
  const calmness = RISKS.length - RISKS.indexOf(rule.risk)
  return JSON.stringify([strictness, calmness, rule.policy, rule.rule, rule.reason])
}
