import type { Readable } from 'node:stream'
import { AirlockError } from '@airlock/contract'
import type { Scrubber } from '../secret/scrubber.ts'

/** An answer of an upstream, head first. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** False for a stream that ends with its connection: its last event alone tells that it is whole. */
  readonly isFramed: boolean
  /** Throws an `AirlockError` when it breaks off, stalls or holds the key. */
  readonly body: AsyncIterable<Buffer>
  /** Ends the answer; its connection is used again only if all of it was read. */
  close(): void
}

/** Bound on the body of an error: enough for its code and a sentence. */
const MAX_FAILURE_BYTES = 64 * 1024

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** Throws `upstream_broken` on a redirect, a compressed body, or one without a stated end that is no stream. Answers whether it has one. */
export function checkHead(status: number, headers: Headers): { readonly isFramed: boolean } {
  if (status >= 300 && status < 400)
    throw broken(`The provider answered with a redirect (${status}), and none is followed: correct base_url.`)
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw broken('The provider answered in an encoding that was not asked for.')
  const isFramed = headers['content-length'] !== undefined || isChunked(headers['transfer-encoding'])
  if (!isFramed && status !== 204 && !isStream(headers['content-type']))
    throw broken('The provider did not say where its answer ends: it has neither a content-length nor chunks.')
  return { isFramed: isFramed || status === 204 }
}

function isStream(type: Headers[string]): boolean {
  return typeof type === 'string' && type.split(';')[0]?.trim().toLowerCase() === 'text/event-stream'
}

function isChunked(encoding: Headers[string]): boolean {
  return typeof encoding === 'string' && encoding.toLowerCase() === 'chunked'
}

export async function* readWhole(body: Readable, scrubber: Scrubber): AsyncGenerator<Buffer> {
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const piece = scrubber.push(chunk)
    if (piece.length > 0) yield piece
  }
  const rest = scrubber.end()
  if (rest.length > 0) yield rest
}

/** Cuts the body of an error at its bound. */
export async function* readFailure(body: Readable, scrubber: Scrubber): AsyncGenerator<Buffer> {
  let left = MAX_FAILURE_BYTES
  for await (const piece of readWhole(body, scrubber)) {
    yield piece.subarray(0, left)
    left -= piece.length
    if (left <= 0) return
  }
}

function broken(message: string): AirlockError {
  return new AirlockError('upstream_broken', message)
}
