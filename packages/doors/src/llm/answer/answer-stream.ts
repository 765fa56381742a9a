import { isRecord } from '../json/is-record.ts'
import type { CallName } from '../routes/find-route.ts'
import { EventStream, type StreamEvent, type Verdict } from '../sse/event-stream.ts'
import { UsageMeter } from '../usage/usage-meter.ts'
import { replaceError } from './stream-error.ts'

export interface StreamedCall {
  readonly name: CallName
  readonly callId: string
  /** Whether the client asked for the chunk with usage itself. */
  readonly wantsUsageChunk: boolean
}

/** Of responses the last event holds the whole answer once more. */
const MAX_EVENT_BYTES = 16 * 1024 * 1024

/**
 * A streamed answer on its way: the provider's bytes as they are, less the chunk with usage that only we asked for, with
 * errors of the provider replaced, and its usage read.
 */
export class AnswerStream {
  readonly #call: StreamedCall
  readonly #events: EventStream
  readonly meter: UsageMeter
  #hasEnded = false

  constructor(call: StreamedCall) {
    this.#call = call
    this.meter = new UsageMeter(call.name)
    this.#events = new EventStream({ maxEventBytes: MAX_EVENT_BYTES, onEvent: (event) => this.#judge(event) })
  }

  write(chunk: Buffer): readonly Buffer[] {
    return this.#events.write(chunk)
  }

  end(): readonly Buffer[] {
    return this.#events.end()
  }

  /** Whether the last event of the protocol has come: what becomes of the connection then does not matter. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  #judge(event: StreamEvent): Verdict {
    const value = parse(event.data)
    this.#hasEnded ||= isEnd(this.#call.name, { data: event.data, value })
    const replaced = replaceError({ name: event.name, value }, this.#call)
    this.meter.takeEvent(value)
    return replaced ?? (this.#isOurChunk(value) ? 'drop' : 'pass')
  }

  #isOurChunk(value: unknown): boolean {
    if (this.#call.name !== 'chat' || this.#call.wantsUsageChunk || !isRecord(value)) return false
    return Array.isArray(value['choices']) && value['choices'].length === 0 && isRecord(value['usage'])
  }
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
