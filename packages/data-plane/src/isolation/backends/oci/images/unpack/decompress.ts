import { AirlockError } from '@airlock/contract'
import { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'

const GZIP = Buffer.from([0x1f, 0x8b])
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** The bytes as they are, or what gzip or zstd packed. How much may come out is for the reader to bound. */
export async function* decompressed(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = bytes[Symbol.asyncIterator]()
  const head: Buffer[] = []
  while (Buffer.concat(head).length < ZSTD.length) {
    const next = await iterator.next()
    if (next.done === true) break
    head.push(next.value)
  }
  const start = Buffer.concat(head)
  const whole = rejoin(start, iterator)
  if (start.subarray(0, GZIP.length).equals(GZIP)) yield* through(whole, createGunzip())
  else if (start.subarray(0, ZSTD.length).equals(ZSTD)) yield* through(whole, createZstdDecompress())
  else yield* whole
}

async function* rejoin(start: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (start.length > 0) yield start
  for (;;) {
    const next = await rest.next()
    if (next.done === true) return
    yield next.value
  }
}

async function* through(
  bytes: AsyncIterable<Buffer>,
  unpacker: ReturnType<typeof createGunzip> | ReturnType<typeof createZstdDecompress>,
): AsyncGenerator<Buffer> {
  const source = Readable.from(bytes, { objectMode: false })
  source.once('error', (error) => unpacker.destroy(error))
  try {
    for await (const chunk of source.pipe(unpacker) as AsyncIterable<Buffer>) yield chunk
  } catch (cause) {
    throw new AirlockError('template_invalid', 'What was compressed cannot be read.', { cause })
  } finally {
    source.destroy()
  }
}
