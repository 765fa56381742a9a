import { z } from 'zod'
import { dropped, flag, list, maybe, name, text, tokens } from './fields.ts'
import { effort, functionShape, neverStored, serviceTier, verbosity } from './functions.ts'
import { jsonSchema } from './open-json.ts'
import { responseItems } from './response-items.ts'

const toolName = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('function'), name }),
  z.strictObject({ type: z.literal('custom'), name }),
])

const toolFormat = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('grammar'), definition: text, syntax: z.enum(['lark', 'regex']) }),
])

const tool = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('function'), ...functionShape, output_schema: maybe(jsonSchema) }),
  z.strictObject({ type: z.literal('custom'), name, description: maybe(text), format: maybe(toolFormat) }),
])

const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.discriminatedUnion('type', [
    ...toolName.options,
    z.strictObject({
      type: z.literal('allowed_tools'),
      mode: z.enum(['auto', 'required']),
      tools: list(toolName),
    }),
  ]),
])

const format = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('json_object') }),
  z.strictObject({
    type: z.literal('json_schema'),
    name,
    description: maybe(text),
    schema: jsonSchema,
    strict: maybe(flag),
  }),
])

const summary = maybe(z.enum(['auto', 'concise', 'detailed']))
const reasoning = z.strictObject({
  effort,
  summary,
  generate_summary: summary,
  context: maybe(z.enum(['auto', 'current_turn', 'all_turns'])),
  mode: maybe(z.literal('standard', { error: 'only "standard" has a price in the table of the server' })),
})

/** Others are about tools that run at the provider. */
const included = z.enum([
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
  'message.input_image.image_url',
])

/** `POST /v1/responses`. */
export const responsesBody = z.strictObject({
  model: name,
  input: z.union([text, responseItems]),
  instructions: maybe(text),
  max_output_tokens: maybe(tokens),
  stream: maybe(flag),
  stream_options: maybe(z.strictObject({ include_obfuscation: maybe(flag) })),
  temperature: maybe(z.number().min(0).max(2)),
  top_p: maybe(z.number().min(0).max(1)),
  top_logprobs: maybe(z.int().min(0).max(20)),
  tools: maybe(list(tool)),
  tool_choice: maybe(toolChoice),
  parallel_tool_calls: maybe(flag),
  text: maybe(z.strictObject({ format: maybe(format), verbosity })),
  reasoning: maybe(reasoning),
  include: maybe(list(included)),
  truncation: maybe(z.enum(['auto', 'disabled'])),
  service_tier: serviceTier,
  store: neverStored,
  background: neverStored,
  user: dropped,
  metadata: dropped,
  safety_identifier: dropped,
  prompt_cache_key: dropped,
})
export type ResponsesBody = z.output<typeof responsesBody>
