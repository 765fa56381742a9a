import {
  type AgentEvent,
  agentEvent,
  AirlockError,
  BOUNDS,
  describeIssues,
  type RunEvent,
  type RunResult,
} from '@airlock/contract'
import { EVENT_OUTPUT_BYTES } from '@airlock/contract/guest'

/** What a program may say before its result. */
type SaidEvent = Exclude<RunEvent, { event: 'started' | 'error' | 'done' | 'assistant_final' }>

const NEWLINE = 0x0a

/**
 * Reads the event output of an agent program, which is hostile: JSON lines of a closed list, each bounded, and nothing after the
 * result. The same bytes give the same events however they are cut, so a reader may begin again at any time. After the first line
 * that is not valid nothing is read any more.
 */
export class RunOutput {
  #rest: Buffer[] = []
  #restBytes = 0
  #bytes = 0
  #lines = 0
  #text = ''
  #textBytes = 0
  readonly #openCalls = new Set<string>()
  #result: RunResult | undefined
  #fault: AirlockError | undefined

  /** All deltas so far. */
  get text(): string {
    return this.#text
  }

  get result(): RunResult | undefined {
    return this.#result
  }

  get fault(): AirlockError | undefined {
    return this.#fault
  }

  /** Events of the lines that end in these bytes. `offset`: of their end, in the log. */
  push(bytes: Buffer, offset: number): readonly SaidEvent[] {
    const events: SaidEvent[] = []
    const start = offset - bytes.length
    let from = 0
    for (let at = bytes.indexOf(NEWLINE); at !== -1 && !this.#fault; at = bytes.indexOf(NEWLINE, from)) {
      this.#keep(bytes.subarray(from, at))
      from = at + 1
      events.push(...this.#line(start + from))
    }
    this.#keep(bytes.subarray(from))
    this.#bytes += bytes.length
    if (this.#bytes >= EVENT_OUTPUT_BYTES) this.#fail(`it wrote more than ${EVENT_OUTPUT_BYTES} bytes of events`)
    return events
  }

  /** The program has ended: a last line may lack its newline. */
  end(offset: number): readonly SaidEvent[] {
    return this.#fault || this.#restBytes === 0 ? [] : this.#line(offset)
  }

  #keep(bytes: Buffer): void {
    if (this.#fault || bytes.length === 0) return
    this.#restBytes += bytes.length
    if (this.#restBytes > BOUNDS.runLineBytes) return this.#fail(`line ${this.#lines + 1} is too long`)
    this.#rest.push(bytes)
  }

  #line(offset: number): readonly SaidEvent[] {
    if (this.#fault) return []
    this.#lines++
    const bytes = Buffer.concat(this.#rest.splice(0))
    this.#restBytes = 0
    if (bytes.every((byte) => byte === 0x20 || byte === 0x0d)) return []
    const event = this.#parse(bytes)
    return event ? this.#take(event, offset) : []
  }

  #parse(bytes: Buffer): AgentEvent | undefined {
    const value = isDeep(bytes) ? undefined : parseJson(bytes)
    if (value === undefined) this.#fail(`line ${this.#lines} is not JSON in UTF-8, or is nested too deep`)
    const parsed = agentEvent.safeParse(value)
    if (parsed.success) return parsed.data
    this.#fail(`line ${this.#lines}: ${describeIssues(parsed.error).slice(0, 300)}`)
    return undefined
  }

  #take(event: AgentEvent, offset: number): readonly SaidEvent[] {
    if (this.#result) return this.#refuse('comes after the result')
    switch (event.type) {
      case 'status': {
        const { phase, label } = event
        return [{ event: 'status', offset, phase, ...(label === undefined ? {} : { label }) }]
      }
      case 'text_delta':
        return this.#say(event.delta, offset)
      case 'tool_call_start': {
        const { toolCallId, toolName, args } = event
        if (this.#openCalls.has(toolCallId)) return this.#refuse('repeats the id of a tool call')
        this.#openCalls.add(toolCallId)
        return [{ event: 'tool_call_start', offset, toolCallId, toolName, args }]
      }
      case 'tool_call_result': {
        const { toolCallId, result, isError } = event
        if (!this.#openCalls.delete(toolCallId)) return this.#refuse('is about no tool call that is open')
        return [{ event: 'tool_call_result', offset, toolCallId, result, isError }]
      }
      case 'result':
        return this.#finish({ payloads: event.payloads, meta: event.meta }, offset)
    }
  }

  #say(delta: string, offset: number): readonly SaidEvent[] {
    this.#textBytes += Buffer.byteLength(delta)
    if (this.#textBytes > BOUNDS.runTextBytes)
      return this.#refuse(`makes the text longer than ${BOUNDS.runTextBytes} bytes`)
    this.#text += delta
    return delta === '' ? [] : [{ event: 'text_delta', offset, delta }]
  }

  /** A program need not stream: what its deltas left out of the text of the result becomes the last delta. */
  #finish(result: RunResult, offset: number): readonly SaidEvent[] {
    const text = result.payloads.map((payload) => payload.text).join('\n\n')
    const isFailure = result.meta.error !== null
    if (!isFailure && !text.startsWith(this.#text)) return this.#refuse('is another text than the deltas before it')
    const rest = isFailure ? [] : this.#say(text.slice(this.#text.length), offset)
    if (!this.#fault) this.#result = result
    return rest
  }

  #refuse(why: string): readonly SaidEvent[] {
    this.#fail(`line ${this.#lines} ${why}`)
    return []
  }

  #fail(why: string): void {
    this.#rest = []
    this.#fault ??= new AirlockError('graph_output_invalid', `The events of the agent program are not valid: ${why}.`)
  }
}

/** Readers of JSON need stack for each level, and programs choose how many there are. */
const MAX_DEPTH = 128
const [QUOTE, BACKSLASH] = [0x22, 0x5c]

function isDeep(bytes: Buffer): boolean {
  let depth = 0
  let isText = false
  for (let at = 0; at < bytes.length && depth <= MAX_DEPTH; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) isText = !isText
    else if (isText && byte === BACKSLASH) at += 1
    else if (!isText && (byte === 0x5b || byte === 0x7b)) depth += 1
    else if (!isText && (byte === 0x5d || byte === 0x7d)) depth -= 1
  }
  return depth > MAX_DEPTH
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    // Undefined is no JSON: the caller refuses the line.
    return undefined
  }
}
