import { z } from 'zod'
import { callId, dropped, list, maybe, name, onlyNull, text } from './fields.ts'
import { base64, fileUrl, imageUrl } from './media.ts'
import { because } from './reasons.ts'

const textPart = z.strictObject({ type: z.literal('text'), text })
const refusalPart = z.strictObject({ type: z.literal('refusal'), refusal: text })
const imagePart = z.strictObject({
  type: z.literal('image_url'),
  image_url: z.strictObject({ url: imageUrl, detail: maybe(z.enum(['auto', 'low', 'high', 'original'])) }),
})
const filePart = z.strictObject({
  type: z.literal('file'),
  file: z.strictObject({ file_data: z.union([fileUrl, base64]), filename: maybe(name) }),
})

const texts = z.union([text, list(textPart)])
const userContent = z.union([text, list(z.discriminatedUnion('type', [textPart, imagePart, filePart]))])
const assistantContent = z.union([text, list(z.discriminatedUnion('type', [textPart, refusalPart]))])

const called = { name, arguments: text, parsed_arguments: dropped }
/** How Google's servers have a model's thoughts sent back. */
const extra = z.strictObject({ google: z.strictObject({ thought_signature: text }) })
const answered = { index: dropped, provider_specific_fields: dropped, extra_content: maybe(extra) }
const toolCall = z.discriminatedUnion('type', [
  z.strictObject({ id: callId, type: z.literal('function'), function: z.strictObject(called), ...answered }),
  z.strictObject({
    id: callId,
    type: z.literal('custom'),
    custom: z.strictObject({ name, input: text }),
    ...answered,
  }),
])

/** How gateways have the thoughts of Anthropic's models sent back. */
const thought = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('thinking'), thinking: text, signature: text, cache_control: dropped }),
  z.strictObject({ type: z.literal('redacted_thinking'), data: text, cache_control: dropped }),
])

/** Answers are sent back as they came: what an answer has and a question does not is left out. */
const assistant = z.strictObject({
  role: z.literal('assistant'),
  content: maybe(assistantContent),
  refusal: maybe(text),
  name: maybe(name),
  tool_calls: maybe(list(toolCall)),
  function_call: maybe(z.strictObject(called)),
  annotations: dropped,
  parsed: dropped,
  reasoning: maybe(text),
  reasoning_content: maybe(text),
  reasoning_details: dropped,
  thinking_blocks: maybe(list(thought)),
  provider_specific_fields: dropped,
  audio: onlyNull(because('model-state')),
})

export const chatMessage = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('system'), content: texts, name: maybe(name) }),
  z.strictObject({ role: z.literal('developer'), content: texts, name: maybe(name) }),
  z.strictObject({ role: z.literal('user'), content: userContent, name: maybe(name) }),
  assistant,
  z.strictObject({ role: z.literal('tool'), content: texts, tool_call_id: callId }),
  z.strictObject({ role: z.literal('function'), content: maybe(text), name }),
])
