import { AirlockError, describeIssues, toAirlockError } from '@airlock/contract'
import { endWhenHeard, type Log } from '@airlock/std'
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

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** What a handler answers: a JSON value, or bytes with their size where it is known. */
export type Answer = { readonly json: unknown } | { readonly bytes: AsyncIterable<Uint8Array>; readonly size?: number }

/** The body as it comes. Stopping early leaves the connection whole, for the error to be answered. */
export function bytesOf({ request }: Call): AsyncIterable<Buffer> {
  return request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
}

export async function readJson<T>(call: Call, schema: z.ZodType<T>): Promise<T> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of bytesOf(call)) {
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
    writeJson(response, 200, answer.json)
    response.end()
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
export function sendError({ request, response }: Exchange, cause: unknown, log: Log): void {
  const error = toAirlockError(cause)
  if (error.code === 'internal') log.error('a call failed', { error: cause })
  if (response.headersSent) return void response.destroy()
  const { code, message, retryAfterS } = error
  writeJson(response, error.status, { error: { code, message, retryAfterS } })
  // Whoever still sends what nobody wants must get to read why.
  if (request.complete) response.end()
  else endWhenHeard(request, response)
}

function writeJson(response: ServerResponse, status: number, value: unknown): void {
  const body = JSON.stringify(value)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.write(body)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text)
  } catch (cause) {
    throw new AirlockError('invalid_request', 'The body is not JSON.', { cause })
  }
}
