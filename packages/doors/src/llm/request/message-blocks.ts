import { z } from 'zod'
import { callId, count, dropped, flag, list, maybe, name, onlyNull, text } from './fields.ts'
import { base64 } from './media.ts'
import { jsonObject } from './open-json.ts'
import { because } from './reasons.ts'

/** Toolsets are tools of the provider. */
const noToolset = onlyNull(because('model-tool'))

export const cacheControl = maybe(z.strictObject({ type: z.literal('ephemeral'), ttl: maybe(z.enum(['5m', '1h'])) }))

const cited = {
  cited_text: text,
  document_index: count,
  document_title: maybe(text),
  file_id: onlyNull(because('model-state')),
}
const citation = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('char_location'), ...cited, start_char_index: count, end_char_index: count }),
  z.strictObject({ type: z.literal('page_location'), ...cited, start_page_number: count, end_page_number: count }),
  z.strictObject({
    type: z.literal('content_block_location'),
    ...cited,
    start_block_index: count,
    end_block_index: count,
  }),
  z.strictObject({
    type: z.literal('search_result_location'),
    cited_text: text,
    source: text,
    title: maybe(text),
    search_result_index: count,
    start_block_index: count,
    end_block_index: count,
  }),
])
const citations = maybe(z.strictObject({ enabled: maybe(flag) }))

const textBlock = z.strictObject({
  type: z.literal('text'),
  text,
  citations: maybe(list(citation)),
  cache_control: cacheControl,
})

const imageBlock = z.strictObject({
  type: z.literal('image'),
  source: z.discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('base64'),
      media_type: z.enum(['image/jpeg', 'image/png', 'image/gif', 'image/webp']),
      data: base64,
    }),
  ]),
  transformations: maybe(z.strictObject({ oversized_image: maybe(z.enum(['downsize', 'error'])) })),
  cache_control: cacheControl,
})

const documentSource = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('base64'), media_type: z.literal('application/pdf'), data: base64 }),
  z.strictObject({ type: z.literal('text'), media_type: z.literal('text/plain'), data: text }),
  z.strictObject({
    type: z.literal('content'),
    content: z.union([text, list(z.discriminatedUnion('type', [textBlock, imageBlock]))]),
  }),
])
const documentBlock = z.strictObject({
  type: z.literal('document'),
  source: documentSource,
  title: maybe(text),
  context: maybe(text),
  citations,
  cache_control: cacheControl,
})

const searchResult = z.strictObject({
  type: z.literal('search_result'),
  source: text,
  title: text,
  content: list(textBlock),
  citations,
  cache_control: cacheControl,
})

const toolResult = z.strictObject({
  type: z.literal('tool_result'),
  tool_use_id: callId,
  content: maybe(
    z.union([text, list(z.discriminatedUnion('type', [textBlock, imageBlock, documentBlock, searchResult]))]),
  ),
  is_error: maybe(flag),
  toolset_name: noToolset,
  cache_control: cacheControl,
})

const toolUse = z.strictObject({
  type: z.literal('tool_use'),
  id: callId,
  name,
  input: jsonObject,
  // Who called it: the model itself, not code that runs at the provider.
  caller: maybe(z.strictObject({ type: z.literal('direct') })).transform(() => undefined),
  toolset_name: noToolset,
  cache_control: cacheControl,
})

const blocks = list(
  z.discriminatedUnion('type', [
    textBlock,
    imageBlock,
    documentBlock,
    searchResult,
    z.strictObject({ type: z.literal('thinking'), thinking: text, signature: text }),
    z.strictObject({ type: z.literal('redacted_thinking'), data: text }),
    toolUse,
    toolResult,
  ]),
)

export const systemText = z.union([text, list(textBlock)])

export const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), content: z.union([text, blocks]) }),
  // Clients that send an answer back whole send its other fields too.
  z.strictObject({
    role: z.literal('assistant'),
    content: z.union([text, blocks]),
    id: dropped,
    type: dropped,
    model: dropped,
    stop_reason: dropped,
    stop_sequence: dropped,
    stop_details: dropped,
    usage: dropped,
  }),
  z.strictObject({ role: z.literal('system'), content: systemText }),
])
export type Block = z.output<typeof blocks>[number]
