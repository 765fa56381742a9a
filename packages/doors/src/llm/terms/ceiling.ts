import type { ModelCall } from '../request/read-call.ts'
import { boundTokens } from './bound-tokens.ts'
import { priceOf } from './cost.ts'
import { outputTokensOf } from './fit-call.ts'
import type { ModelTerms, Prices } from './model-terms.ts'
import { takeInventory } from './take-inventory.ts'

/** Tokens that providers add to what is written. The first is for instructions on tools, schemas and citations. */
export const ADDED = { call: 2048, part: 16, tool: 64, definedTool: 1024, embedding: 16 } as const

/** The most that a call can use and cost. */
export interface Ceiling {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Null when the price is not known. */
  readonly microDollars: number | null
}

/** Of a call that `fitCall` made, and the body that `writeCall` made of it. */
export function ceilingOf({ call, body }: { call: ModelCall; body: string }, terms: ModelTerms): Ceiling {
  // Counting tokens is free of charge at each provider that has it.
  if (call.name === 'countTokens') return { inputTokens: 0, outputTokens: 0, microDollars: 0 }
  const { longCache, ...inventory } = takeInventory(call)
  const inputTokens =
    call.name === 'embeddings'
      ? boundEmbeddings(call.body.input, terms)
      : Math.min(terms.contextTokens, boundText(body, inventory) + boundMedia(inventory, terms))
  const outputTokens = outputTokensOf(call)
  return { inputTokens, outputTokens, microDollars: dearest({ inputTokens, outputTokens, longCache }, terms) }
}

type Counts = Omit<ReturnType<typeof takeInventory>, 'longCache'>

/** Every name and string of the body as written, but for media, whose base64 is ASCII and has no escapes. */
function boundText(body: string, { parts, tools, definedTools, mediaCharacters }: Counts): number {
  const added = ADDED.call + parts * ADDED.part + tools * ADDED.tool + definedTools * ADDED.definedTool
  return boundTokens(body) - mediaCharacters + added
}

function boundMedia(counts: Counts, { tokensPer }: ModelTerms): number {
  return (
    times(counts.images, tokensPer.image) +
    times(counts.files, tokensPer.file) +
    times(counts.opaqueCharacters, tokensPer.opaqueCharacter)
  )
}

function times(many: number, each: number | null): number {
  return many === 0 ? 0 : many * (each ?? Infinity)
}

type Input = Extract<ModelCall, { name: 'embeddings' }>['body']['input']

/** Each input has a context of its own. */
function boundEmbeddings(input: Input, { contextTokens }: ModelTerms): number {
  const one = (tokens: number): number => Math.min(contextTokens, tokens + ADDED.embedding)
  if (typeof input === 'string') return one(boundTokens(input))
  const numbers = input.filter((item) => typeof item === 'number')
  if (numbers.length > 0) return one(numbers.length)
  return input.reduce<number>(
    (sum, item) => sum + one(typeof item === 'string' ? boundTokens(item) : typeof item === 'number' ? 1 : item.length),
    0,
  )
}

interface Most {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly longCache: boolean
}

/** Either table may apply when the input could be long. */
function dearest(most: Most, { prices, longContext }: ModelTerms): number | null {
  if (prices === null) return null
  const couldBeLong = longContext !== null && most.inputTokens > longContext.overTokens
  return Math.max(worst(most, prices), couldBeLong ? worst(most, longContext.prices) : 0)
}

function worst({ inputTokens, outputTokens, longCache }: Most, prices: Prices): number {
  const long = longCache ? prices.cacheWriteLong : 0
  const input = Math.max(prices.input, prices.cacheRead, prices.cacheWrite, long)
  const usage = { input: inputTokens, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0, output: outputTokens }
  return priceOf(usage, { ...prices, input })
}
