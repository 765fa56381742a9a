import { z } from 'zod'

/** Micro-dollars for a million tokens. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

const MICRO = 1_000_000
const MOST_DOLLARS = 100_000
const DECIMAL = /^(\d{1,6})(?:\.(\d{1,6}))?$/

/** Dollars for a million tokens, exactly: a price in binary fractions would be another price. */
const dollars = z
  .union([z.string(), z.number()])
  .transform((given) => microDollars(String(given)))
  .refine((micro) => micro !== undefined, `must be dollars from 0 to ${MOST_DOLLARS}, with at most six decimals`)
  .transform((micro) => micro ?? 0)

/** Every part is said. A part that is missing has no default: an unknown price is not zero. */
const perMillion = z
  .strictObject({ input: dollars, output: dollars, cache_read: dollars, cache_write: dollars })
  .refine((all) => Object.values(all).some((part) => part > 0), 'is 0 in all parts: write price = "free"')
  .transform(({ input, output, cache_read, cache_write }): ModelPrice => ({
    input,
    output,
    cacheRead: cache_read,
    cacheWrite: cache_write,
  }))

const FREE: ModelPrice = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

export const modelPrice = z.union([z.literal('free').transform(() => FREE), perMillion], {
  error: 'must be "free", or a table with input, output, cache_read and cache_write in dollars for a million tokens',
})

function microDollars(text: string): number | undefined {
  const [, whole, fraction = ''] = DECIMAL.exec(text) ?? []
  if (whole === undefined) return undefined
  const micro = Number(whole) * MICRO + Number(fraction.padEnd(6, '0'))
  return micro > MOST_DOLLARS * MICRO ? undefined : micro
}
