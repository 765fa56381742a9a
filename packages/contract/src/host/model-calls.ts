import { z } from 'zod'
import { sandboxId } from '../nouns/scalars.ts'
import { modelName, modelRoute } from './model-routes.ts'

const count = z.int().min(0)

/** What the doors ask before a model is called: may this sandbox, and does the money last. */
export const openModelCall = z.strictObject({
  sandbox: sandboxId,
  route: modelRoute,
  /** As the program inside named it. */
  model: modelName,
  stream: z.boolean(),
  /** Upper bounds: the request cannot cost more. */
  inputTokens: count,
  maxOutputTokens: count,
  ceilingMicroDollars: count,
})
export type OpenModelCall = z.infer<typeof openModelCall>

/** A call that may be made once. */
export const openedModelCall = z.strictObject({
  callId: z.string().max(64),
  /** For `keys`; null where no upstream is asked. */
  reservation: z.string().max(16_384).nullable(),
})
export type OpenedModelCall = z.infer<typeof openedModelCall>

/** Tokens as the upstream counted them; those read from a cache or written to one are not among `inputTokens`. */
export const modelUsage = z.strictObject({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
})
export type ModelUsage = z.infer<typeof modelUsage>

/**
 * How a call ended. `unsent`: no byte of it reached the upstream. `unreported`: the upstream may have worked, and did not say
 * how much.
 */
export const closeModelCall = z.strictObject({
  callId: z.string().max(64),
  usage: z.union([modelUsage, z.enum(['unsent', 'unreported'])]),
  /** What the program inside was answered; null when nobody was there any more. */
  status: z.int().min(100).max(599).nullable(),
  /** The registry code of what went wrong; null when nothing did. */
  error: z.string().max(64).nullable(),
  firstByteMs: count.nullable(),
  durationMs: count,
})
export type CloseModelCall = z.infer<typeof closeModelCall>
