import { AirlockError } from '@airlock/contract'
import { HeldBytes } from './held-bytes.ts'

/** An event as a client of the protocol dispatches it. */
export interface StreamEvent {
  readonly name: string
  /** Lines of data, joined by LF. */
  readonly data: string
}

/** An event above `maxReadBytes`, as it came: reading it would take too long here. It may have no data. */
export interface LargeEvent {
  /** Good until the stream goes on. */
  readonly bytes: Buffer
}

/** What becomes of an event: its bytes pass, are taken out, or others take their place. */
export type Verdict = 'pass' | 'drop' | Buffer

/** Asks for the verdict on each event, in order, before its bytes go on. Returns the bytes that go on now. */
export type Judging = Generator<StreamEvent | LargeEvent, readonly Buffer[], Verdict>

export interface EventStreamOptions {
  /** Also a bound on a line. A longer event is `upstream_broken`. */
  readonly maxEventBytes: number
  /** Longer events are not read, but given away as they came. */
  readonly maxReadBytes: number
}

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const BOM = Buffer.from('\ufeff')

/**
 * Reads server-sent events as the specification says, and gives back the bytes as they came: no byte is changed, added or
 * moved but by a verdict. Lines end with LF, CRLF or CR; chunks may be cut anywhere. An event goes on with its blank line,
 * comments go on with their own line end. Ours, because parsers (`eventsource-parser`) give back fields and not bytes.
 */
export class EventStream {
  readonly #options: EventStreamOptions
  /** Bytes of the event that has begun in an earlier chunk. */
  readonly #held = new HeldBytes()
  /** Where in them the line begins that has begun. */
  #lineStart = 0
  #name = ''
  #data: string[] = []
  /** Whether the event that has begun has a line yet that is no comment. */
  #hasFields = false
  /** Whether the event that has begun is too long to be read here. */
  #isLarge = false
  /** Bytes of the mark of byte order before the event that has begun. */
  #markBytes = 0
  /** The last byte was a CR: an LF that follows is of the same line end. */
  #endedWithCr = false
  #atStart = true
  /** Whether the last bytes went on, and so does the LF of their line end. */
  #passedLast = true

  constructor(options: EventStreamOptions) {
    this.#options = options
  }

  /** Bytes of the event that has begun. */
  get heldBytes(): number {
    return this.#held.length
  }

  *write(chunk: Buffer): Judging {
    const out = new Runs(chunk)
    let from = this.#skipLf(chunk, out)
    for (let end = endOfLine(chunk, from); end !== -1; end = endOfLine(chunk, from)) {
      const next = this.#afterLineEnd(chunk, end)
      this.#bound(next - out.from)
      const isHeld = this.#held.length > 0
      const line = isHeld ? this.#holdLine({ end, next }, out) : chunk.subarray(from, end)
      const bytes = isHeld ? this.#held.view(0, this.#held.length) : chunk.subarray(out.from, next)
      from = next
      const isBlank = this.#readLine(line, bytes.length) === 'blank'
      if (!isBlank && this.#hasFields) continue
      const event = isBlank ? this.#dispatch(bytes) : undefined
      this.#passOn(event === undefined ? 'pass' : yield event, { next, out })
    }
    this.#keep(chunk.subarray(out.from), from - out.from)
    return out.buffers
  }

  /** The rest, when no more will come: an event without its blank line is judged like others. */
  *end(): Judging {
    const bytes = this.#held.view(0, this.#held.length)
    if (bytes.length > this.#lineStart) this.#readLine(bytes.subarray(this.#lineStart), bytes.length)
    const event = this.#dispatch(bytes)
    const verdict = event === undefined ? 'pass' : yield event
    const held = this.#held.take()
    if (Buffer.isBuffer(verdict)) return [verdict]
    return verdict === 'pass' && held.length > 0 ? [held] : []
  }

  #skipLf(chunk: Buffer, out: Runs): number {
    if (!this.#endedWithCr || chunk.length === 0) return 0
    this.#endedWithCr = false
    if (chunk[0] !== LF) return 0
    if (this.#held.length > 0) this.#lineStart += 1
    else out.move(1, this.#passedLast ? 'pass' : 'drop')
    return 1
  }

  #afterLineEnd(chunk: Buffer, end: number): number {
    if (chunk[end] === LF) return end + 1
    if (end + 1 === chunk.length) this.#endedWithCr = true
    return chunk[end + 1] === LF ? end + 2 : end + 1
  }

  /** The line that ends in this chunk and began in an earlier one. */
  #holdLine({ end, next }: { end: number; next: number }, out: Runs): Buffer {
    this.#held.append(out.takeTo(next))
    const line = this.#held.view(this.#lineStart, this.#held.length - (next - end))
    this.#lineStart = this.#held.length
    return line
  }

  #passOn(verdict: Verdict, { next, out }: { next: number; out: Runs }): void {
    this.#passedLast = verdict === 'pass'
    this.#lineStart = 0
    this.#markBytes = 0
    const held = this.#held.take()
    if (verdict === 'pass') out.add(held)
    out.move(next, verdict)
  }

  /** `eventBytes`: of the event up to the end of this line. */
  #readLine(bytes: Buffer, eventBytes: number): 'blank' | 'line' {
    if (this.#atStart && bytes.subarray(0, 3).equals(BOM)) this.#markBytes = 3
    const line = this.#atStart ? bytes.subarray(this.#markBytes) : bytes
    this.#atStart = false
    if (line.length === 0) return 'blank'
    if (line[0] === COLON) return 'line'
    this.#hasFields = true
    this.#isLarge ||= eventBytes > this.#options.maxReadBytes
    if (!this.#isLarge) this.#readField(line)
    return 'line'
  }

  #readField(line: Buffer): void {
    const colon = line.indexOf(COLON)
    const field = line.toString('latin1', 0, colon === -1 ? line.length : colon)
    const value = colon === -1 ? '' : line.toString('utf8', line[colon + 1] === SPACE ? colon + 2 : colon + 1)
    if (field === 'data') this.#data.push(value)
    else if (field === 'event') this.#name = value
  }

  /** The event that ends here. Undefined for one without data. */
  #dispatch(bytes: Buffer): StreamEvent | LargeEvent | undefined {
    const event = { name: this.#name, data: this.#data.join('\n') }
    const [isLarge, isEvent] = [this.#isLarge, this.#data.length > 0]
    this.#name = ''
    this.#data = []
    this.#hasFields = false
    this.#isLarge = false
    if (isLarge) return { bytes: bytes.subarray(this.#markBytes) }
    return isEvent ? event : undefined
  }

  /** The end of a chunk, in the middle of an event. */
  #keep(rest: Buffer, lineStart: number): void {
    if (rest.length === 0) return
    this.#bound(rest.length)
    if (this.#held.length === 0) this.#lineStart = lineStart
    this.#held.append(rest)
  }

  #bound(more: number): void {
    if (this.#held.length + more <= this.#options.maxEventBytes) return
    throw new AirlockError('upstream_broken', 'The model provider sent an event that is too long.')
  }
}

/** The parts of one chunk that go on: neighbours are one buffer. */
class Runs {
  readonly buffers: Buffer[] = []
  readonly #chunk: Buffer
  /** Up to here the chunk is decided. */
  from = 0
  #endsWithChunk = false

  constructor(chunk: Buffer) {
    this.#chunk = chunk
  }

  /** Bytes from before the chunk. */
  add(buffer: Buffer): void {
    if (buffer.length === 0) return
    this.buffers.push(buffer)
    this.#endsWithChunk = false
  }

  /** Bytes of the chunk that somebody else decides. */
  takeTo(to: number): Buffer {
    const taken = this.#chunk.subarray(this.from, to)
    this.from = to
    this.#endsWithChunk = false
    return taken
  }

  /** Decides the chunk up to `to`. */
  move(to: number, verdict: Verdict): void {
    if (verdict === 'pass') this.#pass(to)
    else this.#endsWithChunk = false
    if (Buffer.isBuffer(verdict)) this.buffers.push(verdict)
    this.from = to
  }

  #pass(to: number): void {
    if (to === this.from) return
    const last = this.#endsWithChunk ? this.buffers.pop() : undefined
    this.buffers.push(this.#chunk.subarray(this.from - (last?.length ?? 0), to))
    this.#endsWithChunk = true
  }
}

function endOfLine(chunk: Buffer, from: number): number {
  for (let at = from; at < chunk.length; at++) if (chunk[at] === LF || chunk[at] === CR) return at
  return -1
}

/** The event in bytes that a `LargeEvent` has. Undefined for one without data. */
export function readLargeEvent(bytes: Buffer): StreamEvent | undefined {
  const stream = new EventStream({ maxEventBytes: Infinity, maxReadBytes: Infinity })
  // A mark of byte order is a mark only before the first line of a stream.
  stream.write(Buffer.from('\n')).next()
  for (const judging of [stream.write(bytes), stream.end()]) {
    const { value, done } = judging.next()
    if (done !== true && 'data' in value) return value
  }
  return undefined
}
