import type { IncomingMessage, ServerResponse } from 'node:http'
import { AirlockError } from '@airlock/contract'

/** A JSON body, or answer, of at most `maxBytes`. */
export async function readJson(message: IncomingMessage, maxBytes: number): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of message as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new AirlockError('body_too_large')
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}')
  } catch (cause) {
    throw new AirlockError('invalid_request', 'The body is not JSON.', { cause })
  }
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const text = JSON.stringify(value)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  })
  response.end(text)
}
