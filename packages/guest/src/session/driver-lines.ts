import { type DriverError, type DriverMessage, type DriverRichLine, ERROR_BYTES, LINE_BYTES } from './driver.ts'

const NEWLINE = 10
const VERSION_LENGTH = 128
const MEDIA_TYPE_LENGTH = 128

/** Cuts what a driver says into lines. Throws `BrokenFraming` on a line that is too long. */
export class LineSplitter {
  #chunks: Buffer[] = []
  #bytes = 0

  push(chunk: Buffer): readonly Buffer[] {
    const lines: Buffer[] = []
    let rest = chunk
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      this.#add(rest.subarray(0, end))
      lines.push(Buffer.concat(this.#chunks))
      this.#chunks = []
      this.#bytes = 0
      rest = rest.subarray(end + 1)
    }
    this.#add(rest)
    return lines
  }

  #add(bytes: Buffer): void {
    this.#bytes += bytes.length
    if (this.#bytes > LINE_BYTES) throw new BrokenFraming('a line of the driver is too long')
    if (bytes.length > 0) this.#chunks.push(bytes)
  }
}

export class BrokenFraming extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BrokenFraming'
  }
}

/** Throws `BrokenFraming`. User code may have written it: what passes is bounded and plain. */
export function parseDriverLine(line: Buffer): DriverMessage {
  const json = parseJson(line)
  if (isRecord(json)) {
    const { type, version, nonce, status, line: rich } = json
    if (type === 'ready' && typeof version === 'string') return { type, version: version.slice(0, VERSION_LENGTH) }
    if (type === 'rich' && typeof nonce === 'string') return { type, nonce, line: parseRich(rich) }
    if (type === 'done' && typeof nonce === 'string' && (status === 'completed' || status === 'failed'))
      return { type, nonce, status }
  }
  throw new BrokenFraming('a line of the driver does not fit the protocol')
}

function parseRich(line: unknown): DriverRichLine {
  if (isRecord(line)) {
    const { kind, data, error } = line
    if ((kind === 'display' || kind === 'result') && isBundle(data)) return { kind, data }
    if (kind === 'error' && isRecord(error)) return { kind, error: parseError(error) }
  }
  throw new BrokenFraming('a rich line of the driver does not fit the protocol')
}

function parseError({ name, message, traceback }: Readonly<Record<string, unknown>>): DriverError {
  return {
    name: cut(name, ERROR_BYTES.name),
    message: cut(message, ERROR_BYTES.message),
    traceback: cut(traceback, ERROR_BYTES.traceback),
  }
}

function cut(text: unknown, bytes: number): string {
  const whole = typeof text === 'string' ? text : ''
  if (Buffer.byteLength(whole) <= bytes) return whole
  // A character that was cut in half is dropped.
  return Buffer.from(whole)
    .subarray(0, bytes)
    .toString('utf8')
    .replace(/\uFFFD$/u, '')
}

function isBundle(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && Object.keys(value).every((name) => name.length <= MEDIA_TYPE_LENGTH)
}

function parseJson(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8'))
  } catch {
    throw new BrokenFraming('a line of the driver is not JSON')
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
