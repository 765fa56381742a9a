import type { ChatBody } from '../request/chat.ts'
import type { Block } from '../request/message-blocks.ts'
import type { CountTokensBody, MessagesBody } from '../request/messages.ts'
import type { ModelCall } from '../request/read-call.ts'
import type { ResponsesBody } from '../request/responses.ts'

/** What a call holds beside text, found by its place in the protocol. Arguments of tools are text, whatever they look like. */
interface Found {
  /** Messages, parts of messages, and calls of tools. */
  parts: number
  tools: number
  /** Tools that the provider describes to the model in its own words. */
  definedTools: number
  images: number
  files: number
  /** Characters of base64 in images and files. */
  mediaCharacters: number
  /** Characters that only the provider can read. */
  opaqueCharacters: number
  /** Whether a cache is asked for that lasts longer and costs more. */
  longCache: boolean
}

export function takeInventory(call: ModelCall): Readonly<Found> {
  const found = {
    parts: 0,
    tools: 0,
    definedTools: 0,
    images: 0,
    files: 0,
    mediaCharacters: 0,
    opaqueCharacters: 0,
    longCache: false,
  }
  if (call.name === 'chat') takeChat(call.body, found)
  else if (call.name === 'responses') takeResponses(call.body, found)
  else if (call.name === 'messages' || call.name === 'countTokens') takeMessages(call.body, found)
  return found
}

type Assistant = Extract<ChatBody['messages'][number], { role: 'assistant' }>

function takeThoughts({ tool_calls, thinking_blocks }: Assistant, found: Found): void {
  const signatures = listOf(tool_calls).map((call) => call.extra_content?.google.thought_signature ?? '')
  const blocks = listOf(thinking_blocks).map((block) => (block.type === 'thinking' ? block.signature : block.data))
  for (const opaque of [...signatures, ...blocks]) found.opaqueCharacters += opaque.length
}

type Part = Exclude<NonNullable<ChatBody['messages'][number]['content']>, string>[number]

function takeChat(body: ChatBody, found: Found): void {
  found.tools = listOf(body.tools).length + listOf(body.functions).length
  for (const message of body.messages) {
    const calls = message.role === 'assistant' ? listOf(message.tool_calls) : []
    const parts = listOf<Part>(message.content)
    found.parts += 1 + calls.length + parts.length
    if (message.role === 'assistant') takeThoughts(message, found)
    for (const part of parts)
      if (part.type === 'image_url') takeMedia(found, 'images', part.image_url.url)
      else if (part.type === 'file') takeMedia(found, 'files', part.file.file_data)
  }
}

function takeResponses(body: ResponsesBody, found: Found): void {
  found.tools = listOf(body.tools).length
  const items = listOf(body.input)
  found.parts += items.length
  for (const item of items) {
    if (item.type === 'reasoning') found.opaqueCharacters += item.encrypted_content?.length ?? 0
    const parts = partsOf(item)
    found.parts += parts.length
    for (const part of parts)
      if (part.type === 'input_image') takeMedia(found, 'images', part.image_url)
      else if (part.type === 'input_file') takeMedia(found, 'files', part.file_data)
  }
}

type Item = Exclude<ResponsesBody['input'], string>[number]

function partsOf(item: Item) {
  if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output') return listOf(item.output)
  return item.type === undefined || item.type === 'message' ? listOf(item.content) : []
}

function takeMessages(body: MessagesBody | CountTokensBody, found: Found): void {
  takeCache(found, body)
  for (const tool of listOf(body.tools)) {
    found.tools += 1
    if (tool.type !== undefined && tool.type !== 'custom') found.definedTools += 1
    takeCache(found, tool)
  }
  takeBlocks(listOf(body.system), found)
  for (const { content } of body.messages) {
    found.parts += 1
    takeBlocks(listOf(content), found)
  }
}

type AnyBlock = Block | Extract<MessagesBody['system'], unknown[]>[number]

function takeBlocks(blocks: readonly AnyBlock[], found: Found): void {
  found.parts += blocks.length
  for (const block of blocks) {
    takeCache(found, block)
    takeBlock(block, found)
  }
}

/** What is not listed here is text. */
function takeBlock(block: AnyBlock, found: Found): void {
  if (block.type === 'image') takeMedia(found, 'images', block.source.data)
  else if (block.type === 'document' && block.source.type === 'base64') takeMedia(found, 'files', block.source.data)
  else if (block.type === 'thinking') found.opaqueCharacters += block.signature.length
  else if (block.type === 'redacted_thinking') found.opaqueCharacters += block.data.length
  takeBlocks(blocksWithin(block), found)
}

function blocksWithin(block: AnyBlock): readonly AnyBlock[] {
  if (block.type === 'document') return 'content' in block.source ? listOf(block.source.content) : []
  return block.type === 'tool_result' || block.type === 'search_result' ? listOf(block.content) : []
}

function listOf<T>(content: string | readonly T[] | undefined): readonly T[] {
  return typeof content === 'string' || content === undefined ? [] : content
}

function takeMedia(found: Found, kind: 'images' | 'files', data: string): void {
  found[kind] += 1
  found.mediaCharacters += data.length
}

interface MayCache {
  readonly cache_control?: { readonly ttl?: string | undefined } | undefined
}

function takeCache(found: Found, cached: MayCache | object): void {
  if ('cache_control' in cached && cached.cache_control?.ttl === '1h') found.longCache = true
}
