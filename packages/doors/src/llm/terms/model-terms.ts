/** Micro-dollars for a million tokens: $3 is 3,000,000. */
export interface Prices {
  readonly input: number
  readonly cacheRead: number
  /** What a token costs that is written into the provider's cache for minutes. */
  readonly cacheWrite: number
  /** The same for a cache that lasts longer, such as `ttl: "1h"`. */
  readonly cacheWriteLong: number
  readonly output: number
}

/** What one model of one upstream takes and costs, for one protocol. */
export interface ModelTerms {
  /** How the upstream calls it: aliases end here. */
  readonly upstreamModel: string
  /** No request has more input; of embeddings, no single input has. */
  readonly contextTokens: number
  /** The bound on an answer: of the model, or of a policy if that is lower. */
  readonly maxOutputTokens: number
  /** The most answers to one question (`n`). */
  readonly maxChoices: number
  /** The field of chat completions that this upstream honours. */
  readonly outputField: 'max_tokens' | 'max_completion_tokens'
  /** Null when it is not known: never zero. */
  readonly prices: Prices | null
  /** Prices of a whole call with more input than that. */
  readonly longContext: { readonly overTokens: number; readonly prices: Prices } | null
  /** The most tokens of what is not text. Null when it is not known: then it may fill the context. */
  readonly tokensPer: {
    readonly image: number | null
    readonly file: number | null
    /** A character of reasoning that only the provider can read. */
    readonly opaqueCharacter: number | null
  }
}
