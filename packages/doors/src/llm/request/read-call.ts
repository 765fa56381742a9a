import { AirlockError } from '@airlock/contract'
import type { z } from 'zod'
import { parseBody } from '../json/parse-body.ts'
import { type CallName, isModelName } from '../routes/find-route.ts'
import { chatBody, type ChatBody } from './chat.ts'
import { embeddingsBody, type EmbeddingsBody } from './embeddings.ts'
import { explain } from './explain.ts'
import { countTokensBody, type CountTokensBody, messagesBody, type MessagesBody } from './messages.ts'
import { responsesBody, type ResponsesBody } from './responses.ts'

/** A request as it was understood: nothing of the client's bytes is in it that a schema does not name. */
export type ModelCall =
  | { readonly name: 'chat'; readonly body: ChatBody }
  | { readonly name: 'responses'; readonly body: ResponsesBody }
  | { readonly name: 'embeddings'; readonly body: EmbeddingsBody }
  | { readonly name: 'messages'; readonly body: MessagesBody }
  | { readonly name: 'countTokens'; readonly body: CountTokensBody }

/** The request of a route, or `invalid_request` with the field that is wrong. */
export function readCall(name: CallName, bytes: Buffer): ModelCall {
  const value = parseBody(bytes)
  const call = parse(name, value)
  if (!isModelName(call.body.model)) throw new AirlockError('invalid_request', '"model" is not the name of a model.')
  return call
}

export function isStream(call: ModelCall): boolean {
  return 'stream' in call.body && call.body.stream === true
}

/** Whether the client reads the chunk that `include_usage` adds. If not, that chunk is ours alone. */
export function wantsUsageChunk(call: ModelCall): boolean {
  return call.name === 'chat' && call.body.stream_options?.include_usage === true
}

function parse(name: CallName, value: unknown): ModelCall {
  switch (name) {
    case 'chat':
      return { name, body: check(chatBody, value) }
    case 'responses':
      return { name, body: check(responsesBody, value) }
    case 'embeddings':
      return { name, body: check(embeddingsBody, value) }
    case 'messages':
      return { name, body: check(messagesBody, value) }
    case 'countTokens':
      return { name, body: check(countTokensBody, value) }
  }
}

function check<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new AirlockError('invalid_request', explain(parsed.error, value))
}
