import type { Decision, Effect, Question } from '@airlock/contract'
import type { CompiledPolicy } from './compile.ts'
import { canonicalRules, joinVersions, mergeConditions, riskier, stricter } from './merge.ts'
import { readOperation } from './read-operation.ts'
import type { Reading } from './reading.ts'
import { ASK, type CompiledRule } from './rules.ts'

/**
 * What the policies say together: of the rules that match, the strictest holds. What none of them speaks of is as the
 * strictest default says; of a command line that is every single program in it. What reaches out of a sandbox is asked about
 * unless a rule names it, and a host or a tool is denied: no default and no rule about points alone lets it pass.
 */
export function evaluate(
  policies: readonly CompiledPolicy[],
  question: Question,
  options: { readonly default: Effect },
): Decision {
  const asked = new Asked(policies, question)
  const reading = readOperation(question.operation)
  for (const policy of policies) asked.ofOperation(policy)
  const isWholeCovered = asked.isCovered
  const isEachCovered = askParts(asked, reading)
  const least = stricter(options.default, leastOf(question))
  const fallback = policies.reduce((effect, policy) => stricter(effect, policy.default ?? 'allow'), least)
  return asked.decide(isWholeCovered || isEachCovered ? 'allow' : fallback)
}

/** A host and a tool that no rule names are denied: programs try many, and no person should be asked about each. */
function leastOf(question: Question): Effect {
  const { kind } = question.operation
  if (kind === 'network' || kind === 'tool') return 'deny'
  if (question.operation.kind === 'worktree') return question.operation.findings.length > 0 ? 'ask' : 'allow'
  return isOutward(question) ? 'ask' : 'allow'
}

/** Fails closed: a host, a model, a tool and an action are free text, of which a default knows nothing. */
function isOutward({ operation: { kind }, point }: Question): boolean {
  return kind === 'network' || kind === 'model' || kind === 'tool' || kind === 'worktree' || point === ASK
}

/** Whether a rule spoke of each part; never when there is none. */
function askParts(asked: Asked, { invocations, codes }: Reading): boolean {
  let isCovered = invocations.length > 0 || codes.length > 0
  for (const invocation of invocations) if (!asked.ofInvocation(invocation) && !invocation.isCovered) isCovered = false
  const isOfCode = codes.map((code) => asked.ofCode(code)).some(Boolean)
  return isCovered && (isOfCode || invocations.some((invocation) => !invocation.isCovered))
}

class Asked {
  readonly #policies: readonly CompiledPolicy[]
  readonly #question: Question
  readonly #isOutward: boolean
  readonly #matched = new Set<CompiledRule>()
  /** A rule that is more than a note matched the operation as a whole. */
  isCovered = false

  constructor(policies: readonly CompiledPolicy[], question: Question) {
    this.#policies = policies
    this.#question = question
    this.#isOutward = isOutward(question)
  }

  ofOperation(policy: CompiledPolicy): void {
    const { operation, point } = this.#question
    for (const rule of policy.ofOperation)
      if (rule.ofOperation(operation, { point }) && this.#take(rule))
        this.isCovered ||= !this.#isOutward || rule.namesOutward
  }

  ofInvocation(invocation: Reading['invocations'][number]): boolean {
    let isCovered = false
    for (const { byProgram, ofAnyProgram } of this.#policies) {
      for (const rule of byProgram.get(invocation.program) ?? [])
        if (rule.ofInvocation(invocation) && this.#take(rule)) isCovered = true
      for (const rule of ofAnyProgram) if (rule.ofInvocation(invocation) && this.#take(rule)) isCovered = true
    }
    return isCovered
  }

  ofCode(code: Reading['codes'][number]): boolean {
    let isCovered = false
    for (const { ofCode } of this.#policies)
      for (const rule of ofCode) if (rule.ofCode(code) && this.#take(rule)) isCovered = true
    return isCovered
  }

  decide(uncovered: Effect): Decision {
    const rules = [...this.#matched]
    const first = { effect: uncovered, risk: 'low', conditions: {} } as const
    const { effect, risk, conditions } = rules.reduce<Pick<Decision, 'effect' | 'risk' | 'conditions'>>(
      (so, { rule }) => ({
        effect: stricter(so.effect, rule.effect),
        risk: riskier(so.risk, rule.risk),
        conditions: mergeConditions(so.conditions, rule.conditions ?? {}),
      }),
      first,
    )
    const matched = canonicalRules(rules.map((rule) => rule.matched))
    return {
      effect,
      risk,
      rules: matched,
      conditions,
      policyVersion: joinVersions(this.#policies.map(({ label }) => label)),
    }
  }

  /** Notes it, unless it is switched off or not for this caller; whether it is more than a note. */
  #take(rule: CompiledRule): boolean {
    if (this.#policies.some(({ off }) => off.has(rule.key)) || !rule.holdsFor(this.#question)) return false
    this.#matched.add(rule)
    return !rule.rule.note
  }
}
