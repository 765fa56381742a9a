import { type IncomingMessage, request as dialRequest, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { AirlockError } from '@airlock/contract'
import { type Flow, pump } from '../flow/flow.ts'
import { forwarded, type PlainRequest } from './plain-request.ts'

interface Exchange {
  readonly plain: PlainRequest
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Sends one request over a connection of its own, and its answer back. Both are framed anew; trailers are dropped. */
export async function forwardPlain(
  { plain, request, response }: Exchange,
  { flow, upstream }: { readonly flow: Flow; readonly upstream: Socket },
): Promise<void> {
  const { method, path, headers } = plain
  const out = dialRequest({
    method,
    path,
    headers: [...headers, 'Connection', 'close'],
    createConnection: () => upstream,
  })
  if (request.headers.expect !== undefined) response.writeContinue()
  const { promise: answered, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  out.on('response', resolve)
  out.on('error', reject)
  out.on('close', () => reject(new Error('closed')))
  out.on('upgrade', () => reject(new Error('an upgrade that nobody asked for')))
  const countAll = () => {
    flow.countTo('sent', upstream.bytesWritten)
    flow.countTo('received', upstream.bytesRead)
  }
  // Heads count, too: of the request, of interim answers and of the answer.
  out.on('information', countAll)
  out.flushHeaders()
  pump(request, out, { flow, direction: 'sent', total: (chunk) => upstream.bytesWritten + chunk.length })
  try {
    const answer = await answered.catch((cause: unknown) => {
      throw new AirlockError('host_unreachable', 'The host did not answer in HTTP.', { cause })
    })
    countAll()
    await passAnswer(answer, response, { flow, upstream })
  } finally {
    countAll()
  }
}

async function passAnswer(
  answer: IncomingMessage,
  response: ServerResponse,
  { flow, upstream }: { readonly flow: Flow; readonly upstream: Socket },
): Promise<void> {
  response.writeHead(answer.statusCode ?? 502, safeReason(answer.statusMessage), [...forwarded(answer)])
  const finished = new Promise<void>((resolve) => {
    response.once('finish', resolve).once('close', resolve)
    flow.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  response.once('finish', () => flow.done())
  // An answer that breaks off must not look whole.
  answer.once('close', () => {
    if (!answer.complete) response.destroy()
  })
  pump(answer, response, { flow, direction: 'received', total: () => upstream.bytesRead })
  await finished
}

function safeReason(text = ''): string {
  return text.replaceAll(/[^ -~]/g, '?')
}
