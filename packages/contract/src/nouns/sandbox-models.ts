import { z } from 'zod'
import { BOUNDS, DEFAULTS } from '../defaults.ts'
import { modelName } from '../host/model-routes.ts'
import { within } from './scalars.ts'

/** Names or aliases of models, each at most once. */
export const modelNames = z
  .array(modelName)
  .max(BOUNDS.models)
  .refine((names) => new Set(names).size === names.length, 'must not repeat')

const fields = {
  calls: within(DEFAULTS.sandboxModelCalls).int().nullable().describe('Calls in its whole life. Null is no cap.'),
  tokens: within(DEFAULTS.sandboxModelTokens)
    .int()
    .nullable()
    .describe('Input, output and cached tokens in its whole life. Null is no cap.'),
  dollars: within(DEFAULTS.sandboxModelDollars).nullable().describe('In its whole life. Null is no cap.'),
  concurrentCalls: within(DEFAULTS.sandboxConcurrentModelCalls).int().describe('Calls under way at once.'),
}

/** Caps on the model calls of one sandbox. Budgets of its agent and tenant hold beside them. */
export const modelLimits = z.strictObject({
  calls: fields.calls.default(null),
  tokens: fields.tokens.default(null),
  dollars: fields.dollars.default(null),
  concurrentCalls: fields.concurrentCalls.default(DEFAULTS.sandboxConcurrentModelCalls.default),
})
export type ModelLimits = z.infer<typeof modelLimits>

/** Those that a caller or a template names. */
export const someModelLimits = z.strictObject(fields).partial()
export type SomeModelLimits = z.infer<typeof someModelLimits>
