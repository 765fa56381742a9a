import { AirlockError, describeIssues, toAirlockError } from '@airlock/contract'
import type { Log } from '@airlock/std'
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

export async function readJson<T>(call: Call, schema: z.ZodType<T>): Promise<T> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of call.request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_JSON_BYTES) throw new AirlockError('body_too_large')
    chunks.push(chunk)
  }
  const parsed = schema.safeParse(parseJson(Buffer.concat(chunks).toString('utf8')))
  if (!parsed.success) throw new AirlockError('invalid_request', describeIssues(parsed.error))
  return parsed.data
}

export async function send(response: ServerResponse, answer: Answer): Promise<void> {
  if ('json' in answer) {
    sendJson(response, 200, answer.json)
    return
  }
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

/** An error after the first byte cannot be told any more: the connection breaks, and the reader sees that. */
export function sendError(response: ServerResponse, cause: unknown, log: Log): void {
  const error = toAirlockError(cause)
  if (error.code === 'internal') log.error('a call failed', { error: cause })
  if (response.headersSent) response.destroy()
  else
    sendJson(response, error.status, {
      error: { code: error.code, message: error.message, retryAfterS: error.retryAfterS },
    })
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const body = JSON.stringify(value)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text)
  } catch (cause) {
    throw new AirlockError('invalid_request', 'The body is not JSON.', { cause })
  }
}
