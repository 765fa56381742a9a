import { isRecord } from '../json/is-record.ts'
import type { CallName } from '../routes/find-route.ts'
import { readLargeEvent, type StreamEvent } from '../sse/event-stream.ts'
import { hasContent } from '../usage/open-choices.ts'
import { replaceError } from './stream-error.ts'

export interface StreamedCall {
  readonly name: CallName
  readonly callId: string
  /** Whether the client asked for the chunk with usage itself. */
  readonly wantsUsageChunk: boolean
}

/** One event of a provider, as it was read. */
export interface JudgedEvent {
  /** Whether it is the last of its protocol. */
  readonly isEnd: boolean
  readonly verdict: 'pass' | 'drop' | Uint8Array
  /** What the meter of usage reads of it. */
  readonly metered: unknown
}

/** The chunk with usage that only we asked for is dropped, and errors of the provider are replaced. */
export function judgeEvent({ name, data }: StreamEvent, call: StreamedCall): JudgedEvent {
  const value = parse(data)
  return {
    isEnd: isEnd(call.name, { data, value }),
    verdict: replaceError({ name, value }, call) ?? (isOurChunk(value, call) ? 'drop' : 'pass'),
    metered: value,
  }
}

const NOTHING: JudgedEvent = { isEnd: false, verdict: 'pass', metered: undefined }

/** The same of an event above the bound, in a thread. The answer is short, but for a replaced event. */
export function judgeLargeEvent(bytes: Uint8Array, call: StreamedCall): JudgedEvent {
  const event = readLargeEvent(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  if (event === undefined) return NOTHING
  const judged = judgeEvent(event, call)
  return { ...judged, metered: pruneEvent(judged.metered) }
}

/** One more than an answer may have: what is above the bound stays above it. */
const MAX_CHOICES = 129
const MAX_SCALAR = 64
const MAX_USAGE = 4096
const NOT_UNDERSTOOD = { input_tokens: 'long', output_tokens: 'long', prompt_tokens: 'long' }

/** What the meter reads of an event, and nothing that could be long. */
function pruneEvent(value: unknown): unknown {
  if (!isRecord(value)) return undefined
  const { choices, message, response } = value
  return {
    ...pickScalars(value, ['type']),
    ...('usage' in value ? { usage: pruneUsage(value['usage']) } : {}),
    ...(isRecord(message) ? { message: { usage: pruneUsage(message['usage']) } } : {}),
    ...(isRecord(response) ? { response: { usage: pruneUsage(response['usage']) } } : {}),
    ...(Array.isArray(choices) ? { choices: choices.slice(0, MAX_CHOICES).map(pruneChoice) } : {}),
  }
}

function pruneChoice(choice: unknown): unknown {
  if (!isRecord(choice)) return null
  const content = hasContent(choice['delta']) ? { content: '…' } : {}
  return { ...pickScalars(choice, ['index', 'finish_reason']), delta: content }
}

/** Usage that is longer than any is not understood. */
function pruneUsage(usage: unknown): unknown {
  const text = JSON.stringify(usage) ?? ''
  return text.length <= MAX_USAGE ? usage : NOT_UNDERSTOOD
}

function pickScalars(from: Readonly<Record<string, unknown>>, names: readonly string[]): object {
  return Object.fromEntries(names.filter((name) => name in from).map((name) => [name, shortScalar(from[name])]))
}

function shortScalar(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, MAX_SCALAR)
  return typeof value === 'object' && value !== null ? 'nested' : value
}

function isOurChunk(value: unknown, { name, wantsUsageChunk }: StreamedCall): boolean {
  if (name !== 'chat' || wantsUsageChunk || !isRecord(value)) return false
  return Array.isArray(value['choices']) && value['choices'].length === 0 && isRecord(value['usage'])
}

const RESPONSE_ENDS: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete', 'response.failed'])

function isEnd(name: CallName, { data, value }: { readonly data: string; readonly value: unknown }): boolean {
  if (name === 'chat') return data === '[DONE]'
  const type = isRecord(value) ? value['type'] : undefined
  return name === 'messages' ? type === 'message_stop' : RESPONSE_ENDS.has(type)
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    // Such as [DONE]: it passes as it is.
    return undefined
  }
}
