import { AirlockError } from '@airlock/contract'
import type { ModelCall } from '../request/read-call.ts'
import type { ModelTerms } from './model-terms.ts'

/** The least that thinking may be given. */
const MIN_THINKING_TOKENS = 1024

/**
 * The call with a bound on its answer, set where the client set none and lowered where it asked for more. `n` is refused
 * above its bound: a client that reads the third answer would break on two.
 */
export function fitCall(call: ModelCall, terms: ModelTerms): ModelCall {
  switch (call.name) {
    case 'chat': {
      const { max_tokens, max_completion_tokens, n = 1, ...body } = call.body
      if (n > terms.maxChoices)
        throw new AirlockError('invalid_request', `"n" is ${n}; this model gives at most ${terms.maxChoices} answers.`)
      const most = leastOf(terms, max_tokens, max_completion_tokens)
      const bounds = { max_tokens: undefined, max_completion_tokens: undefined, [terms.outputField]: most }
      return { ...call, body: { ...body, ...bounds, n: n > 1 ? n : undefined } }
    }
    case 'responses':
      return { ...call, body: { ...call.body, max_output_tokens: leastOf(terms, call.body.max_output_tokens) } }
    case 'messages': {
      const most = leastOf(terms, call.body.max_tokens)
      return { ...call, body: { ...call.body, max_tokens: most, thinking: fitThinking(call.body.thinking, most) } }
    }
    case 'embeddings':
    case 'countTokens':
      return call
  }
}

/** The most tokens that all answers to a fitted call have together. */
export function outputTokensOf(call: ModelCall): number {
  switch (call.name) {
    case 'chat':
      return (call.body.max_tokens ?? call.body.max_completion_tokens ?? Infinity) * (call.body.n ?? 1)
    case 'responses':
      return call.body.max_output_tokens ?? Infinity
    case 'messages':
      return call.body.max_tokens ?? Infinity
    case 'embeddings':
    case 'countTokens':
      return 0
  }
}

function leastOf(terms: ModelTerms, ...asked: readonly (number | undefined)[]): number {
  return Math.min(terms.maxOutputTokens, ...asked.filter((tokens) => tokens !== undefined))
}

type Thinking = Extract<ModelCall, { name: 'messages' }>['body']['thinking']

/** Thinking is a part of the answer. */
function fitThinking(thinking: Thinking, most: number): Thinking {
  if (thinking?.type !== 'enabled') return thinking
  const budget = Math.min(thinking.budget_tokens, most - 1)
  if (budget >= MIN_THINKING_TOKENS) return { ...thinking, budget_tokens: budget }
  throw new AirlockError(
    'invalid_request',
    `"thinking.budget_tokens" needs at least ${MIN_THINKING_TOKENS} tokens below "max_tokens", which is ${most} here.`,
  )
}
