import { z } from 'zod'
import { callId, dropped, list, maybe, name, onlyNull, text } from './fields.ts'
import { base64, fileUrl, imageUrl } from './media.ts'
import { because } from './reasons.ts'

const noId = onlyNull(because('model-state'))

const detail = maybe(z.enum(['auto', 'low', 'high', 'original']))

const textPart = z.strictObject({ type: z.literal('input_text'), text })
const imagePart = z.strictObject({ type: z.literal('input_image'), file_id: noId, image_url: imageUrl, detail })
const filePart = z.strictObject({
  type: z.literal('input_file'),
  file_id: noId,
  file_data: z.union([fileUrl, base64]),
  filename: maybe(name),
  detail: maybe(z.enum(['auto', 'low', 'high'])),
})
const spokenPart = z.strictObject({ type: z.literal('output_text'), text, annotations: dropped, logprobs: dropped })
const refusalPart = z.strictObject({ type: z.literal('refusal'), refusal: text })

const inputParts = list(z.discriminatedUnion('type', [textPart, imagePart, filePart]))
const parts = list(z.discriminatedUnion('type', [textPart, imagePart, filePart, spokenPart, refusalPart]))

/** Ids name what the provider stored for some account: items are sent whole, and never by id. */
const answered = { id: dropped, status: dropped }
const called = { call_id: callId, name, ...answered, caller: direct(), parsed_arguments: dropped }
const result = z.union([text, inputParts])

const reasoning = z.strictObject({
  type: z.literal('reasoning'),
  summary: list(z.strictObject({ type: z.literal('summary_text'), text })),
  content: maybe(list(z.strictObject({ type: z.literal('reasoning_text'), text }))),
  encrypted_content: maybe(text),
  ...answered,
})

const item = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('message').optional(),
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: z.union([text, parts]),
    phase: maybe(z.enum(['commentary', 'final_answer'])),
    ...answered,
  }),
  z.strictObject({ type: z.literal('function_call'), arguments: text, ...called }),
  z.strictObject({ type: z.literal('function_call_output'), call_id: callId, output: result, ...answered }),
  z.strictObject({ type: z.literal('custom_tool_call'), input: text, ...called }),
  z.strictObject({ type: z.literal('custom_tool_call_output'), call_id: callId, output: result, ...answered }),
  reasoning,
])

/**
 * What a response continues. Reasoning without its encrypted content was a reference to what the provider stored; nothing is
 * stored for us, so such items are left out.
 */
export const responseItems = list(item).transform((items) =>
  items.filter((one) => one.type !== 'reasoning' || one.encrypted_content !== undefined),
)

/** Who called a tool: the model itself, not a program that runs at the provider. */
function direct(): z.ZodType<undefined> {
  return z
    .strictObject({ type: z.literal('direct') })
    .nullish()
    .transform(() => undefined)
}
