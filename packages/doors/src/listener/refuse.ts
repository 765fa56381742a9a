import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AirlockError } from '@airlock/contract'
import { endSoon, newId } from '@airlock/std'
import { sendJson } from '@airlock/wire'

/** Answers an error and ends the connection. After the first byte of an answer there is no other way to say it but to cut. */
export function refuse(response: ServerResponse, error: AirlockError, requestId: string): void {
  if (response.destroyed || response.writableEnded) return
  if (response.headersSent) return void response.destroy()
  response.setHeader('connection', 'close')
  sendJson(response, error.status, textOf(error, requestId))
}

/** The same for bytes that are no request. */
export function refuseMalformed(socket: Duplex): void {
  const text = JSON.stringify(
    textOf(new AirlockError('invalid_request', 'The request is not valid HTTP.'), newId('req')),
  )
  endSoon(
    socket,
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  )
}

function textOf({ code, message, hint, retryable, approval }: AirlockError, requestId: string): object {
  return { error: { code, message, hint, retryable, approval, requestId } }
}
