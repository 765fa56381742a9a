import { redactText } from '@airlock/audit'
import { BOUNDS, conditions, type Decision, effect, type MatchedRule, type Question, risk } from '@airlock/contract'
import { z } from 'zod'
import type { Source } from './guardian.ts'

const MOST_BYTES = 64 * 1024
const MOST_REASONS = 16

interface Options {
  /** Where OPA answers, such as http://127.0.0.1:8181. */
  readonly url: string
  /** The document that is asked for, below it: v1/data/airlock/decision. */
  readonly path: string
  readonly timeoutMs: number
}

const reason = z.string().transform((text) => redactText(text.toWellFormed()).slice(0, BOUNDS.reasonLength))
const decided = z.strictObject({
  effect,
  risk: risk.optional(),
  reasons: z.array(reason).max(MOST_REASONS).default([]),
  conditions: conditions.default({}),
})
const allowed = z.strictObject({ allow: z.boolean(), reason: reason.optional() })
const answer = z.object({ result: z.unknown().optional() })

/**
 * Open Policy Agent, asked through its REST data API: `{"input": question}`. Fails closed: when it does not answer in time, fails,
 * has no result or answers something else, that is a denial which says so.
 */
export class Opa implements Source {
  readonly name = 'opa'
  readonly #options: Options
  #health: ReturnType<Source['health']> = { isHealthy: null, problem: null }

  constructor(options: Options) {
    this.#options = options
  }

  async decide(question: Question): Promise<Decision> {
    const said = await this.#ask(question).catch((error: unknown) => ({ problem: this.#describe(error) }))
    const read = 'problem' in said ? said : readResult(said.result)
    const problem = 'problem' in read ? read.problem : null
    this.#health = { isHealthy: problem === null, problem }
    return 'problem' in read ? unanswered(read.problem) : read.decision
  }

  health(): ReturnType<Source['health']> {
    return this.#health
  }

  /** Bounded in time and size; a redirect could lead anywhere. */
  async #ask(question: Question): Promise<{ readonly result: unknown } | { readonly problem: string }> {
    const { url, path, timeoutMs } = this.#options
    const response = await fetch(`${url.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`, {
      method: 'POST',
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ input: question }),
    })
    const text = await readBounded(response)
    if (text === undefined) return { problem: 'OPA answered too much.' }
    if (!response.ok) return { problem: `OPA answered ${response.status}.` }
    const parsed = answer.safeParse(parseJson(text))
    if (!parsed.success) return { problem: 'OPA did not answer JSON.' }
    if (parsed.data.result === undefined) return { problem: `OPA has no result at ${path}.` }
    return { result: parsed.data.result }
  }

  #describe(error: unknown): string {
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    return isLate ? `OPA did not answer within ${this.#options.timeoutMs} ms.` : 'OPA cannot be reached.'
  }
}

async function readBounded(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > MOST_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Undefined fits no schema here.
    return undefined
  }
}

function readResult(result: unknown): { readonly decision: Decision } | { readonly problem: string } {
  const full = decided.safeParse(result).data
  if (full) return { decision: toDecision(full) }
  const simple = allowed.safeParse(result).data
  if (!simple) return { problem: 'OPA answered something that is not a decision.' }
  const reasons = simple.reason === undefined ? [] : [simple.reason]
  return { decision: toDecision({ effect: simple.allow ? 'allow' : 'deny', reasons, conditions: {} }) }
}

/** An allow that gives no reason and asks for nothing needs no rule to be named. */
function toDecision(said: z.infer<typeof decided>): Decision {
  const isPlain = said.effect === 'allow' && said.reasons.length === 0
  const reasons = said.reasons.length > 0 ? said.reasons : ['OPA gives no reason.']
  const how = { effect: said.effect, risk: said.risk ?? (said.effect === 'allow' ? 'low' : 'medium') } as const
  const rules = isPlain
    ? []
    : reasons.map((text): MatchedRule => ({ policy: 'opa', rule: 'decision', ...how, reason: text }))
  return { ...how, rules, conditions: said.conditions, policyVersion: 'opa' }
}

function unanswered(problem: string): Decision {
  const how = { effect: 'deny', risk: 'medium' } as const
  const reason = `${problem} What it does not allow is denied.`
  return {
    ...how,
    rules: [{ policy: 'opa', rule: 'unanswered', ...how, reason }],
    conditions: {},
    policyVersion: 'opa',
  }
}
