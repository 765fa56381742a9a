import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { AirlockError } from '@airlock/contract'
import { endSoon } from '@airlock/std'

/** Clients show no more of it. */
const MAX_REASON = 300

/**
 * A refusal as a client of a proxy shows it: the status line has the sentence, for most clients show nothing else, and the body
 * has it for programs.
 */
function refusalOf(error: AirlockError, requestId: string) {
  const { code, message, hint, retryable, approval, status } = error
  // No client of a proxy knows 428.
  const shown = code === 'approval_required' || code === 'token_refused' ? 403 : status
  const body = JSON.stringify({ error: { code, message, hint, retryable, approval, requestId } })
  const sentence = `${message} ${hint}`.replaceAll(/[^ -~]/g, '?').slice(0, MAX_REASON)
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  return { status: shown, sentence, headers, body }
}

/** Answers a CONNECT. */
export function refuseConnect(client: Duplex, error: AirlockError, requestId: string): void {
  const { status, sentence, headers, body } = refusalOf(error, requestId)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  endSoon(client, `HTTP/1.1 ${status} ${sentence}\r\n${lines.join('')}\r\n${body}`)
}

/** Answers a request in plain HTTP. After the first byte of an answer there is no other way to say it but to cut. */
export function refusePlain(response: ServerResponse, error: AirlockError, requestId: string): void {
  if (response.destroyed || response.writableEnded) return
  if (response.headersSent) return void response.destroy()
  const { status, sentence, headers, body } = refusalOf(error, requestId)
  response.writeHead(status, sentence, headers).end(body)
}

/** A fatal TLS alert, access_denied: what a client shows that was promised a tunnel already. */
export function refuseTls(client: Duplex): void {
  endSoon(client, '\u0015\u0003\u0003\u0000\u0002\u0002\u0031')
}
