import type { ModelTerms } from '../terms/model-terms.ts'

/** The model of the server itself. */
export const DEMO_MODEL = 'airlock/demo'

/** What it always says, so that nobody takes it for a model. */
export const DEMO_NOTICE =
  'This is airlock/demo, a demo that costs nothing and asks no provider. The models of this server: "airlock llm models".'

const FREE = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0, output: 0 }

/** Its price is stated: zero is the price here, not an unknown one. */
export const DEMO_TERMS: ModelTerms = {
  upstreamModel: DEMO_MODEL,
  contextTokens: 1_000_000,
  maxOutputTokens: 1024,
  maxChoices: 4,
  outputField: 'max_completion_tokens',
  prices: FREE,
  longContext: null,
  tokensPer: { image: 1024, file: 1024, opaqueCharacter: 1 },
}
