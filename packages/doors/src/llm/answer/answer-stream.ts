import { EventStream, type LargeEvent, type Verdict } from '../sse/event-stream.ts'
import { UsageMeter } from '../usage/usage-meter.ts'
import { judgeEvent, type JudgedEvent, type StreamedCall } from './judge-event.ts'

/** Of responses the last event holds the whole answer once more. */
const MAX_EVENT_BYTES = 16 * 1024 * 1024
/** No content of this length takes longer than handing it to a thread and back. */
export const MAX_READ_BYTES = 4096
/** Short events between two rests: a few milliseconds of the shortest. */
const EVENTS_AT_ONCE = 512

/**
 * Yields an event that somebody else must read, or a rest: others may have their turn. Returns the bytes that go on now.
 */
export type Answering = Generator<LargeEvent | 'rest', readonly Buffer[], JudgedEvent | undefined>

/**
 * A streamed answer on its way: the provider's bytes as they are, less the chunk with usage that only we asked for, with
 * errors of the provider replaced, and its usage read.
 */
export class AnswerStream {
  readonly #call: StreamedCall
  readonly #events = new EventStream({ maxEventBytes: MAX_EVENT_BYTES, maxReadBytes: MAX_READ_BYTES })
  readonly meter: UsageMeter
  #hasEnded = false

  constructor(call: StreamedCall) {
    this.#call = call
    this.meter = new UsageMeter(call.name)
  }

  write(chunk: Buffer): Answering {
    return this.#judging(this.#events.write(chunk))
  }

  end(): Answering {
    return this.#judging(this.#events.end())
  }

  /** Bytes that wait for the rest of their event. */
  get heldBytes(): number {
    return this.#events.heldBytes
  }

  /** Whether the last event of the protocol has come: what becomes of the connection then does not matter. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  *#judging(judging: ReturnType<EventStream['write']>): Answering {
    let step = judging.next()
    for (let events = 1; step.done !== true; events++) {
      if (events % EVENTS_AT_ONCE === 0) yield 'rest'
      const event = step.value
      const judged = 'bytes' in event ? yield event : judgeEvent(event, this.#call)
      if (judged === undefined) throw new TypeError('a large event has no verdict')
      step = judging.next(this.#take(judged))
    }
    return step.value
  }

  #take({ isEnd, verdict, metered }: JudgedEvent): Verdict {
    this.#hasEnded ||= isEnd
    this.meter.takeEvent(metered)
    return typeof verdict === 'string' ? verdict : Buffer.from(verdict)
  }
}
