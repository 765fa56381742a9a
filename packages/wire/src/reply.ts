import type { IncomingMessage, ServerResponse } from 'node:http'
import { toAirlockError } from '@airlock/contract'
import { endWhenHeard, type Log } from '@airlock/std'

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  writeJson(response, status, value)
  response.end()
}

/**
 * Answers an error in the one shape that `WireClient` reads. The text of an error that is not ours is logged, and never
 * sent. After the first byte of an answer none can be told any more: the connection breaks, and the reader sees that.
 */
export function refuse({ request, response }: Exchange, thrown: unknown, log: Log): void {
  const error = toAirlockError(thrown)
  if (error.code === 'internal') log.error('a call failed', { error: thrown })
  if (response.destroyed) return
  if (response.headersSent) return void response.destroy()
  const { code, message, retryAfterS } = error
  writeJson(response, error.status, { error: { code, message, retryAfterS } })
  // Whoever still sends what nobody wants must get to read why.
  if (request.complete) response.end()
  else endWhenHeard(request, response)
}

function writeJson(response: ServerResponse, status: number, value: unknown): void {
  const text = JSON.stringify(value)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  })
  response.write(text)
}
