import { readJson as readBoundedJson, sendJson } from '@airlock/wire'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'

const MAX_JSON_BYTES = 4 * 1024 * 1024

/** One call of the control plane. `signal` aborts when it hangs up. */
export interface Call {
  readonly request: IncomingMessage
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly signal: AbortSignal
}

/** What a handler answers: a JSON value, or bytes with their size where it is known. */
export type Answer = { readonly json: unknown } | { readonly bytes: AsyncIterable<Uint8Array>; readonly size?: number }

/** The body as it comes. Stopping early leaves the connection whole, for the error to be answered. */
export function bytesOf({ request }: Call): AsyncIterable<Buffer> {
  return request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
}

export async function readJson<T>({ request }: Call, schema: z.ZodType<T>): Promise<T> {
  return readBoundedJson(request, schema, MAX_JSON_BYTES)
}

export async function send(response: ServerResponse, answer: Answer): Promise<void> {
  if ('json' in answer) return sendJson(response, 200, answer.json)
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    ...(answer.size === undefined ? {} : { 'x-size': String(answer.size) }),
  })
  // That it was accepted is an answer, however long the first byte takes.
  response.flushHeaders()
  for await (const chunk of answer.bytes) if (!response.write(chunk)) await drained(response)
  response.end()
}

/** A caller who hung up reads no more; the source was told so by its signal. */
async function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return
  const over = new AbortController()
  const either = ['drain', 'close'].map((event) => once(response, event, { signal: over.signal }))
  await Promise.race(either).finally(() => over.abort())
  // The one that lost is aborted.
  await Promise.allSettled(either)
}
