import { z } from 'zod'
import { upstreamHealth } from '../host/keys-api.ts'
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

/** Upstreams as the process `keys` sees them, and calls under way. */
export const llmStatus = z.strictObject({
  upstreams: z.array(
    upstreamHealth.extend({
      lastStatus: upstreamHealth.shape.lastStatus.describe('Of any tenant: null unless the key is of the platform.'),
      lastError: upstreamHealth.shape.lastError.describe('Of any tenant: null unless the key is of the platform.'),
      calls: z.int().nullable().describe('Since its start. Null unless the key is of the platform.'),
      models: z.int().describe('Models that it serves.'),
    }),
  ),
  underWay: z.strictObject({
    calls: z.int(),
    microDollars: z.int().describe('Reserved for them.'),
  }),
})
export type LlmStatus = z.infer<typeof llmStatus>
