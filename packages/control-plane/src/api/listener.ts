import { AirlockError } from '@airlock/contract'
import { endSoon, newId } from '@airlock/std'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { errorText } from './reply.ts'

export interface Tls {
  readonly cert: string
  readonly key: string
}

/** The bounds of a connection. Bodies have their own: an upload or a stdin may take long, a head may not. */
const LIMITS = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 5_000,
  requestTimeout: 0,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 500,
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
  noDelay: true,
} as const

export function createListener(handler: RequestListener, tls: Tls | null): Server {
  const server = tls
    ? createTlsServer({ ...LIMITS, ...tls, minVersion: 'TLSv1.2', handshakeTimeout: LIMITS.headersTimeout }, handler)
    : createServer(LIMITS, handler)
  // A client that waits for "100 Continue" gets it only once its key is known and its body is wanted.
  server.on('checkContinue', handler)
  return server
}

const STATUS: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The head of the request is too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request did not arrive in time.'],
}

/** What is not HTTP, or too much of it, never reaches a route: it is answered in the one shape and cut off. */
export function refuseMalformed(error: Error & { readonly code: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const [status, message] = STATUS[error.code] ?? ['400 Bad Request', 'The request is not valid HTTP.']
  const id = newId('req')
  const text = errorText(new AirlockError('invalid_request', message), id)
  const head = [
    `HTTP/1.1 ${status}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(text)}`,
    `x-request-id: ${id}`,
    'connection: close',
  ]
  endSoon(socket, `${head.join('\r\n')}\r\n\r\n${text}`)
}
