import type { ServedModel } from '@airlock/contract'
import type { ModelTerms } from './model-terms.ts'

/** More answers to one question are refused. */
const MAX_CHOICES = 8

/** The terms of a configured model. What the table does not price, `prepareCall` refuses. */
export function termsOf({ name, upstream, contextWindow, maxOutput, price }: ServedModel): ModelTerms {
  return {
    upstreamModel: upstream?.model ?? name,
    contextTokens: contextWindow,
    maxOutputTokens: maxOutput,
    maxChoices: MAX_CHOICES,
    outputField: upstream?.kind === 'openai' ? 'max_completion_tokens' : 'max_tokens',
    prices: { ...price, cacheWriteLong: price.cacheWrite },
    longContext: null,
    tokensPer: { image: null, file: null, opaqueCharacter: null },
  }
}
