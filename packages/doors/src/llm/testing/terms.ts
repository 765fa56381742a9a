import type { ModelTerms, Prices } from '../terms/model-terms.ts'

export const PRICES: Prices = {
  input: 3_000_000,
  cacheRead: 300_000,
  cacheWrite: 3_750_000,
  cacheWriteLong: 6_000_000,
  output: 15_000_000,
}

export const TERMS: ModelTerms = {
  upstreamModel: 'vendor/model-1',
  contextTokens: 200_000,
  maxOutputTokens: 8192,
  maxChoices: 4,
  outputField: 'max_completion_tokens',
  prices: PRICES,
  longContext: null,
  tokensPer: { image: 1600, file: null, opaqueCharacter: 1 },
}
