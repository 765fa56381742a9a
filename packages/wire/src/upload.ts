import type { ClientRequest } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AirlockError, isAirlockError } from '@airlock/contract'

/** Failing to send fails the request, whose 'error' the caller hears; after an early answer it no longer matters. */
export async function upload(source: Source, outgoing: ClientRequest): Promise<void> {
  outgoing.once('response', (response) => response.once('end', () => outgoing.destroy()))
  try {
    await pipeline(Readable.from(source, { objectMode: false }), outgoing)
  } catch {
    outgoing.destroy()
  }
}

/** A body that breaks off is the caller's doing, not the peer's; the connection's own error would not tell. */
export class Source implements AsyncIterable<Buffer> {
  readonly #bytes: AsyncIterable<Buffer>
  fault: AirlockError | undefined

  constructor(bytes: AsyncIterable<Buffer>) {
    this.#bytes = bytes
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of this.#bytes) yield chunk
    } catch (cause) {
      this.fault = isAirlockError(cause) ? cause : new AirlockError('invalid_request', 'The body broke off.', { cause })
      throw this.fault
    }
  }
}
