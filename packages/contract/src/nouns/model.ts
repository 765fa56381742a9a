import { z } from 'zod'
import { modelName, upstreamKind, upstreamName } from '../host/model-routes.ts'

const dollars = z.number().describe('Dollars for a million tokens.')

/** A model of a configured upstream. */
export const model = z.strictObject({
  name: modelName,
  aliases: z.array(modelName),
  upstream: upstreamName.nullable().describe('Null: the server answers itself.'),
  kind: upstreamKind.nullable(),
  contextWindow: z.int().describe('Tokens that it reads at most.'),
  maxOutput: z.int().describe('Tokens that it writes at most.'),
  price: z.strictObject({ input: dollars, output: dollars, cacheRead: dollars, cacheWrite: dollars }),
})
export type Model = z.infer<typeof model>
