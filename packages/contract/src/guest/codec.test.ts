import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeData, encodeMessage, type Frame, FrameDecoder, FrameError } from './codec.ts'
import { MAX_FRAME_BYTES } from './messages.ts'

const message = fc.jsonValue().map((json): Frame => ({ kind: 'message', json: JSON.parse(JSON.stringify(json)) }))
const data = fc
  .record({
    channel: fc.nat(0xffffffff),
    stream: fc.nat(255),
    offset: fc.maxSafeNat(),
    bytes: fc.uint8Array({ maxLength: 300 }),
  })
  .map((fields): Frame => ({ kind: 'data', ...fields, bytes: Buffer.from(fields.bytes) }))
const frames = fc.array(fc.oneof(message, data), { maxLength: 12 })

describe('the frame codec', () => {
  it('brings every frame back, however the stream is cut', () => {
    fc.assert(
      fc.property(frames, fc.infiniteStream(fc.nat(40)), (sent, sizes) => {
        const decoder = new FrameDecoder()
        const got: Frame[] = []
        let rest = Buffer.concat(sent.map(encode))
        for (const size of sizes) {
          if (rest.length === 0) break
          got.push(...decoder.push(rest.subarray(0, size)))
          rest = rest.subarray(size)
        }
        expect(got.map(plain)).toEqual(sent.map(plain))
      }),
      { numRuns: 300 },
    )
  })

  it('answers any bytes with frames or a FrameError, nothing else', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 8 }), (chunks) => {
        expectFramesOrFault(chunks.map((chunk) => Buffer.from(chunk)))
      }),
      { numRuns: 1000 },
    )
  })

  it('answers a damaged stream with frames or a FrameError, nothing else', () => {
    fc.assert(
      fc.property(frames, fc.nat(), fc.nat(255), (sent, at, value) => {
        const bytes = Buffer.concat(sent.map(encode))
        if (bytes.length > 0) bytes[at % bytes.length] = value
        expectFramesOrFault([bytes])
      }),
      { numRuns: 1000 },
    )
  })

  it('refuses a frame that is too long at its header, before it holds any of it', () => {
    const header = Buffer.alloc(5)
    header.writeUInt32BE(MAX_FRAME_BYTES + 1)
    expect(() => new FrameDecoder().push(header)).toThrow(FrameError)
    expect(() => encodeData({ channel: 1, stream: 0, offset: 0, bytes: Buffer.alloc(MAX_FRAME_BYTES) })).toThrow(
      FrameError,
    )
    expect(() => encodeMessage('x'.repeat(MAX_FRAME_BYTES))).toThrow(FrameError)
  })

  it('takes the longest frame', () => {
    const bytes = Buffer.alloc(MAX_FRAME_BYTES - 14, 7)
    const sent = { kind: 'data', channel: 1, stream: 1, offset: 5, bytes } as const
    const got = new FrameDecoder().push(encode(sent))
    expect(got.map(plain)).toEqual([plain(sent)])
  })

  it('holds a frame that comes byte by byte in not much more than its size', () => {
    const decoder = new FrameDecoder()
    const bytes = encodeData({ channel: 1, stream: 1, offset: 0, bytes: Buffer.alloc(400_000, 1) })
    const before = process.memoryUsage()
    let early = 0
    for (let at = 0; at < bytes.length - 1; at++) early += decoder.push(Buffer.from(bytes.subarray(at, at + 1))).length
    expect(early).toBe(0)
    const after = process.memoryUsage()
    expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(150 * 1024 * 1024)
    expect(decoder.push(bytes.subarray(-1))).toHaveLength(1)
  })
})

function encode(frame: Frame): Buffer {
  return frame.kind === 'data' ? encodeData(frame) : encodeMessage(frame.json)
}

/** Buffers compared as text, which is quick and shows what differs. */
function plain(frame: Frame): unknown {
  return frame.kind === 'data' ? { ...frame, bytes: frame.bytes.toString('hex') } : frame
}

function expectFramesOrFault(chunks: readonly Buffer[]): void {
  const decoder = new FrameDecoder()
  try {
    for (const chunk of chunks) decoder.push(chunk)
  } catch (error) {
    expect(error).toBeInstanceOf(FrameError)
  }
}
