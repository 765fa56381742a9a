import { z } from 'zod'
import type { ModelUsage } from './model-calls.ts'
import { modelName, upstreamKind, upstreamName } from './model-routes.ts'

const microDollars = z.int().min(0)

/** Micro-dollars for a million tokens. */
export const modelPrices = z.strictObject({
  input: microDollars,
  output: microDollars,
  cacheRead: microDollars,
  cacheWrite: microDollars,
})
export type ModelPrices = z.infer<typeof modelPrices>

/** A model by the name that callers use. */
export const servedModel = z.strictObject({
  name: modelName,
  aliases: z.array(modelName),
  /** Null: the doors answer themselves. */
  upstream: z.strictObject({ name: upstreamName, kind: upstreamKind, model: modelName }).nullable(),
  contextWindow: z.int().min(1),
  maxOutput: z.int().min(0),
  price: modelPrices,
})
export type ServedModel = z.infer<typeof servedModel>

/** Answers without a key, a provider or a price: it shows that the way works. */
export const DEMO_MODEL: ServedModel = {
  name: 'airlock/demo',
  aliases: [],
  upstream: null,
  contextWindow: 128_000,
  maxOutput: 4096,
  price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
}

const MILLION = 1_000_000n

/** Micro-dollars, rounded up. Amounts above the largest exact number become that number. */
export function costOf(usage: ModelUsage, price: ModelPrices): number {
  const parts = [
    [usage.inputTokens, price.input],
    [usage.outputTokens, price.output],
    [usage.cacheReadTokens, price.cacheRead],
    [usage.cacheWriteTokens, price.cacheWrite],
  ] as const
  const sum = parts.reduce((so, [tokens, each]) => so + BigInt(tokens) * BigInt(each), 0n)
  const rounded = (sum + MILLION - 1n) / MILLION
  return rounded > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(rounded)
}
