import { MAX_FRAME_BYTES } from './messages.ts'

const KIND_MESSAGE = 1
const KIND_DATA = 2
const HEADER_BYTES = 5
const DATA_HEADER_BYTES = 13
const JOINED_BYTES = 64 * 1024

/** A frame as bytes on the wire: u32 length of what follows, u8 kind, then JSON or a data header and raw bytes. */
export type Frame =
  | { readonly kind: 'message'; readonly json: unknown }
  | {
      readonly kind: 'data'
      readonly channel: number
      readonly stream: number
      readonly offset: number
      readonly bytes: Buffer
    }

/** The stream byte of data frames: 0 for stdin and files. `rich` is of steps: JSON lines, as `richLine` of the contract. */
export const STREAM = { none: 0, stdout: 1, stderr: 2, rich: 3 } as const

export class FrameError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FrameError'
  }
}

export function encodeMessage(message: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(message))
  if (body.length + 1 > MAX_FRAME_BYTES) throw new FrameError(`message of ${body.length} bytes is too long`)
  const frame = Buffer.allocUnsafe(HEADER_BYTES + body.length)
  frame.writeUInt32BE(body.length + 1, 0)
  frame.writeUInt8(KIND_MESSAGE, 4)
  body.copy(frame, HEADER_BYTES)
  return frame
}

export function encodeData(data: { channel: number; stream: number; offset: number; bytes: Uint8Array }): Buffer {
  const length = 1 + DATA_HEADER_BYTES + data.bytes.length
  if (length > MAX_FRAME_BYTES) throw new FrameError(`data of ${data.bytes.length} bytes is too long`)
  const frame = Buffer.allocUnsafe(4 + length)
  frame.writeUInt32BE(length, 0)
  frame.writeUInt8(KIND_DATA, 4)
  frame.writeUInt32BE(data.channel, 5)
  frame.writeUInt8(data.stream, 9)
  frame.writeBigUInt64BE(BigInt(data.offset), 10)
  frame.set(data.bytes, HEADER_BYTES + DATA_HEADER_BYTES)
  return frame
}

/**
 * Cuts a byte stream into frames, however it arrives. Throws `FrameError` on the first byte that cannot be part of a
 * frame; the connection is then useless and must be closed. Holds at most one frame.
 */
export class FrameDecoder {
  #chunks: Buffer[] = []
  #bytes = 0

  push(chunk: Buffer): Frame[] {
    this.#add(chunk)
    const frames: Frame[] = []
    for (;;) {
      const frame = this.#next()
      if (!frame) return frames
      frames.push(frame)
    }
  }

  /** Small chunks are joined as they come, so that a stream of single bytes does not cost an object for each. */
  #add(chunk: Buffer): void {
    this.#bytes += chunk.length
    let last = chunk
    for (;;) {
      const before = this.#chunks.at(-1)
      if (!before || before.length > last.length || before.length + last.length > JOINED_BYTES) break
      this.#chunks.pop()
      last = Buffer.concat([before, last])
    }
    if (last.length > 0) this.#chunks.push(last)
  }

  #next(): Frame | undefined {
    if (this.#bytes < HEADER_BYTES) return undefined
    const length = this.#peek(4).readUInt32BE(0)
    if (length < 1 || length > MAX_FRAME_BYTES) throw new FrameError(`frame of ${length} bytes`)
    if (this.#bytes < 4 + length) return undefined
    return decodeBody(this.#take(4 + length).subarray(4))
  }

  #peek(count: number): Buffer {
    const first = this.#chunks[0]
    return first && first.length >= count ? first : this.#join()
  }

  #take(count: number): Buffer {
    const all = this.#peek(count)
    const taken = all.subarray(0, count)
    this.#bytes -= count
    if (all.length === count) this.#chunks.shift()
    else this.#chunks[0] = all.subarray(count)
    return taken
  }

  #join(): Buffer {
    const all = Buffer.concat(this.#chunks)
    this.#chunks = [all]
    return all
  }
}

function decodeBody(body: Buffer): Frame {
  const kind = body.readUInt8(0)
  if (kind === KIND_MESSAGE) return { kind: 'message', json: parseJson(body.subarray(1)) }
  if (kind !== KIND_DATA) throw new FrameError(`frame of kind ${kind}`)
  if (body.length < 1 + DATA_HEADER_BYTES) throw new FrameError('data frame without header')
  const offset = body.readBigUInt64BE(6)
  if (offset > BigInt(Number.MAX_SAFE_INTEGER)) throw new FrameError('data frame with an impossible offset')
  return {
    kind: 'data',
    channel: body.readUInt32BE(1),
    stream: body.readUInt8(5),
    offset: Number(offset),
    bytes: body.subarray(1 + DATA_HEADER_BYTES),
  }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new FrameError('message that is not JSON')
  }
}
