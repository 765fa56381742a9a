import { richLine, type StepError, type StepEvent } from '@airlock/contract'
import { RICH_BYTES } from '@airlock/contract/guest'
import { textOf } from '../commands/command-events.ts'
import type { OutputItem } from '@airlock/wire'

const NEWLINE = 10
const MAX_NAME = 256
const MAX_MESSAGE = 16 * 1024
const MAX_TRACEBACK = 64 * 1024

/**
 * What a step says, as events after byte `from`. A rich line may come in many pieces with text between them: it is one
 * event, when it is whole, and its offset is where it ends. So whoever goes on within a line gets it once, if the pieces
 * before `from` are read again; text before `from` is left out.
 */
export class StepSaid {
  readonly #from: number
  #pieces: Buffer[] = []
  #bytes = 0
  #error: StepError | null = null

  constructor(from: number) {
    this.#from = from
  }

  /** Why the step failed, if its last rich line says so. */
  get error(): StepError | null {
    return this.#error
  }

  *take(item: Extract<OutputItem, { kind: 'bytes' }>): Generator<StepEvent> {
    if (item.stream === 'rich') yield* this.#takeRich(item)
    else {
      const end = item.offset + item.bytes.length
      const fresh = item.bytes.subarray(Math.max(0, this.#from - item.offset))
      if (fresh.length > 0) yield { event: 'output', stream: item.stream, offset: end, ...textOf(fresh) }
    }
  }

  /** For who only wants to know the error. */
  hear(item: Extract<OutputItem, { kind: 'bytes' }>): void {
    Array.from(this.take(item))
  }

  *#takeRich({ offset, bytes }: { readonly offset: number; readonly bytes: Buffer }): Generator<StepEvent> {
    let at = 0
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, at)) {
      this.#add(bytes.subarray(at, end))
      at = end + 1
      yield* this.#line(offset + at)
    }
    this.#add(bytes.subarray(at))
  }

  #add(piece: Buffer): void {
    if (piece.length === 0 || this.#bytes > RICH_BYTES) return
    this.#pieces.push(piece)
    this.#bytes += piece.length
  }

  /** What does not fit the agreement is left out: it is the program's own doing. */
  *#line(end: number): Generator<StepEvent> {
    const parsed = richLine.safeParse(parseJson(Buffer.concat(this.#pieces).toString('utf8')))
    this.#pieces = []
    this.#bytes = 0
    if (!parsed.success) return
    this.#error = parsed.data.kind === 'error' ? bounded(parsed.data.error) : null
    if (parsed.data.kind !== 'error' && end > this.#from) yield { event: 'rich', offset: end, output: parsed.data }
  }
}

function bounded({ name, message, traceback }: StepError): StepError {
  return {
    name: name.slice(0, MAX_NAME).toWellFormed(),
    message: message.slice(0, MAX_MESSAGE).toWellFormed(),
    // The end of a traceback says what went wrong.
    traceback: traceback.slice(-MAX_TRACEBACK).toWellFormed(),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Fits no schema, so the caller leaves it out.
    return undefined
  }
}
