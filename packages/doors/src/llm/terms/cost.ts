import type { Usage } from '../usage/usage.ts'
import type { ModelTerms, Prices } from './model-terms.ts'

const MILLION = 1_000_000n

/** Micro-dollars of a call, rounded up. Null when the price is not known. */
export function costOf(
  usage: Usage,
  { prices, longContext }: Pick<ModelTerms, 'prices' | 'longContext'>,
): number | null {
  if (prices === null) return null
  const isLong = longContext !== null && inputOf(usage) > longContext.overTokens
  return priceOf(usage, isLong ? longContext.prices : prices)
}

/** All tokens that were read, from a cache or not. */
function inputOf(usage: Usage): number {
  return usage.input + usage.cacheRead + usage.cacheWrite + usage.cacheWriteLong
}

export function priceOf(usage: Usage, prices: Prices): number {
  const kinds = ['input', 'cacheRead', 'cacheWrite', 'cacheWriteLong', 'output'] as const
  const total = kinds.reduce((sum, kind) => sum + BigInt(usage[kind]) * BigInt(prices[kind]), 0n)
  const rounded = (total + MILLION - 1n) / MILLION
  return rounded > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(rounded)
}
