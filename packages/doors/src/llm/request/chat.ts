import { z } from 'zod'
import { chatMessage } from './chat-messages.ts'
import { atLeastOne, dropped, flag, list, maybe, name, text, tokens } from './fields.ts'
import { effort, functionShape, neverStored, serviceTier, verbosity } from './functions.ts'
import { jsonSchema } from './open-json.ts'

const MAX_STOPS = 16
const MAX_BIASES = 1024

const named = z.strictObject({ name })
const toolName = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('function'), function: named }),
  z.strictObject({ type: z.literal('custom'), custom: named }),
])

const grammar = z.strictObject({ definition: text, syntax: z.enum(['lark', 'regex']) })
const tool = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('function'), function: z.strictObject(functionShape) }),
  z.strictObject({
    type: z.literal('custom'),
    custom: z.strictObject({
      name,
      description: maybe(text),
      format: maybe(
        z.discriminatedUnion('type', [
          z.strictObject({ type: z.literal('text') }),
          z.strictObject({ type: z.literal('grammar'), grammar }),
        ]),
      ),
    }),
  }),
])

const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.discriminatedUnion('type', [
    ...toolName.options,
    z.strictObject({
      type: z.literal('allowed_tools'),
      allowed_tools: z.strictObject({ mode: z.enum(['auto', 'required']), tools: list(toolName) }),
    }),
  ]),
])

const responseFormat = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('json_object') }),
  z.strictObject({
    type: z.literal('json_schema'),
    json_schema: z.strictObject({
      name,
      description: maybe(text),
      schema: maybe(jsonSchema),
      strict: maybe(flag),
    }),
  }),
])

/** `POST /v1/chat/completions`. */
export const chatBody = z.strictObject({
  model: name,
  messages: atLeastOne(chatMessage),
  max_tokens: maybe(tokens),
  max_completion_tokens: maybe(tokens),
  n: maybe(z.int().min(1)),
  stream: maybe(flag),
  stream_options: maybe(z.strictObject({ include_usage: maybe(flag), include_obfuscation: maybe(flag) })),
  temperature: maybe(z.number().min(0).max(2)),
  top_p: maybe(z.number().min(0).max(1)),
  frequency_penalty: maybe(z.number().min(-2).max(2)),
  presence_penalty: maybe(z.number().min(-2).max(2)),
  logit_bias: maybe(
    z
      .record(z.string().regex(/^\d{1,9}$/), z.number().min(-100).max(100))
      .refine((biases) => Object.keys(biases).length <= MAX_BIASES, `has more than ${MAX_BIASES} entries.`),
  ),
  logprobs: maybe(flag),
  top_logprobs: maybe(z.int().min(0).max(20)),
  stop: maybe(z.union([text, list(text, { max: MAX_STOPS })])),
  seed: maybe(z.int()),
  tools: maybe(list(tool)),
  tool_choice: maybe(toolChoice),
  parallel_tool_calls: maybe(flag),
  functions: maybe(list(z.strictObject({ ...functionShape, strict: z.undefined().optional() }))),
  function_call: maybe(z.union([z.enum(['none', 'auto']), named])),
  response_format: maybe(responseFormat),
  reasoning_effort: effort,
  verbosity,
  service_tier: serviceTier,
  store: neverStored,
  user: dropped,
  metadata: dropped,
  safety_identifier: dropped,
  prompt_cache_key: dropped,
})
export type ChatBody = z.output<typeof chatBody>
