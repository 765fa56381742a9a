import { z } from 'zod'
import type { Usage } from './usage.ts'

const tokens = z.int().min(0)
const maybeTokens = tokens.nullish().transform((value) => value ?? 0)

/** OpenAI counts what came from a cache, or went into one, as a part of the input. */
const chatUsage = z.object({
  prompt_tokens: tokens,
  completion_tokens: tokens,
  prompt_tokens_details: z
    .object({ cached_tokens: maybeTokens, cache_write_tokens: maybeTokens, cache_creation_tokens: maybeTokens })
    .nullish(),
})

const responsesUsage = z.object({
  input_tokens: tokens,
  output_tokens: tokens,
  input_tokens_details: z
    .object({
      cached_tokens: maybeTokens,
      cache_write_tokens: maybeTokens,
      cache_write_tokens_details: z.object({ ttl_12h_tokens: maybeTokens }).nullish(),
    })
    .nullish(),
})

const embeddingsUsage = z.object({ prompt_tokens: tokens })

/** Anthropic counts them beside the input. */
const messagesUsage = z.object({
  input_tokens: tokens,
  output_tokens: tokens,
  cache_read_input_tokens: maybeTokens,
  cache_creation_input_tokens: maybeTokens,
  cache_creation: z.object({ ephemeral_1h_input_tokens: maybeTokens }).nullish(),
})

export function readChatUsage(value: unknown): Usage | undefined {
  const { data } = chatUsage.safeParse(value)
  if (!data) return undefined
  const { cached_tokens = 0, cache_write_tokens = 0, cache_creation_tokens = 0 } = data.prompt_tokens_details ?? {}
  const cacheWrite = Math.max(cache_write_tokens, cache_creation_tokens)
  return divide(data.prompt_tokens, {
    cacheRead: cached_tokens,
    cacheWrite,
    cacheWriteLong: 0,
    output: data.completion_tokens,
  })
}

export function readResponsesUsage(value: unknown): Usage | undefined {
  const { data } = responsesUsage.safeParse(value)
  if (!data) return undefined
  const { cached_tokens = 0, cache_write_tokens = 0, cache_write_tokens_details } = data.input_tokens_details ?? {}
  const cacheWriteLong = cache_write_tokens_details?.ttl_12h_tokens ?? 0
  const cacheWrite = cache_write_tokens - cacheWriteLong
  return divide(data.input_tokens, { cacheRead: cached_tokens, cacheWrite, cacheWriteLong, output: data.output_tokens })
}

export function readEmbeddingsUsage(value: unknown): Usage | undefined {
  const { data } = embeddingsUsage.safeParse(value)
  return data && { input: data.prompt_tokens, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0, output: 0 }
}

export function readMessagesUsage(value: unknown): Usage | undefined {
  const { data } = messagesUsage.safeParse(value)
  if (!data) return undefined
  const cacheWriteLong = data.cache_creation?.ephemeral_1h_input_tokens ?? 0
  const cacheWrite = data.cache_creation_input_tokens - cacheWriteLong
  const { input_tokens: input, cache_read_input_tokens: cacheRead, output_tokens: output } = data
  return checked({ input, cacheRead, cacheWrite, cacheWriteLong, output })
}

function divide(all: number, parts: Omit<Usage, 'input'>): Usage | undefined {
  return checked({ input: all - parts.cacheRead - parts.cacheWrite - parts.cacheWriteLong, ...parts })
}

/** Parts that are more than the whole are no usage. */
function checked(usage: Usage): Usage | undefined {
  return Object.values(usage).every((count: number) => count >= 0) ? usage : undefined
}
