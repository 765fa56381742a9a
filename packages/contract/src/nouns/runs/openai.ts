import { z } from 'zod'
import { BOUNDS } from '../../defaults.ts'
import { graphName } from './graph.ts'

const part = z.object({ type: z.literal('text'), text: z.string() })
const content = z.union([z.string(), z.array(part).max(BOUNDS.runMessages)])

/**
 * A request of an OpenAI client. Fields that only tune a model are taken and have no effect: the agent program decides how it
 * calls models. Tools are refused, for the caller could not run them.
 */
export const openaiChatBody = z.looseObject({
  model: graphName,
  messages: z
    .array(z.looseObject({ role: z.enum(['system', 'developer', 'user', 'assistant']), content }))
    .min(1)
    .max(BOUNDS.runMessages),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1).nullish(),
  tools: z.array(z.json()).max(0, 'is not supported: tools belong to the agent program').nullish(),
  functions: z.array(z.json()).max(0, 'is not supported: tools belong to the agent program').nullish(),
  response_format: z.looseObject({ type: z.literal('text', 'must be text: the agent program decides') }).nullish(),
})
export type OpenaiChatBody = z.infer<typeof openaiChatBody>

const usage = z.strictObject({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() })
export type OpenaiUsage = z.infer<typeof usage>

export const openaiChat = z.strictObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int(),
  model: z.string(),
  choices: z.array(
    z.strictObject({
      index: z.int(),
      message: z.strictObject({ role: z.literal('assistant'), content: z.string(), refusal: z.null() }),
      finish_reason: z.literal('stop'),
      logprobs: z.null(),
    }),
  ),
  usage,
})
export type OpenaiChat = z.infer<typeof openaiChat>

export const openaiModels = z.strictObject({
  object: z.literal('list'),
  data: z.array(z.strictObject({ id: z.string(), object: z.literal('model'), created: z.int(), owned_by: z.string() })),
})
export type OpenaiModels = z.infer<typeof openaiModels>
