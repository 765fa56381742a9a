import {
  AirlockError,
  BOUNDS,
  type ErrorCode,
  isAirlockError,
  ROUTES,
  toAirlockError,
  type Route,
  type RouteName,
} from '@airlock/contract'
import { type DrainBounds, endWhenHeard, type Log } from '@airlock/std'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Readable } from 'node:stream'
import { hasBody, isUpload } from './body.ts'
import type { Answer } from './call.ts'
import { isOpenai, openaiError } from './openai-error.ts'
import { beatingFrames, cutWhenSlow, eventFrames, exactly } from './stream.ts'

/** A refused upload is read to its end: many clients read no answer before. It holds the shares of its caller meanwhile. */
const UPLOAD_DRAIN: DrainBounds = { bytes: BOUNDS.uploadBytes, ms: 10_000, counts: 'silence' }

export interface Exchange {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly log: Log
  /** Aborts when the server closes. */
  readonly closing: AbortSignal
}

/** Sends what a handler answered. A value that does not fit its response schema never leaves. */
export function sendAnswer(
  name: RouteName,
  answer: Exclude<Answer, { kind: 'file' }>,
  exchange: Exchange,
): FastifyReply {
  const { reply } = exchange
  switch (answer.kind) {
    case 'json':
      return reply
        .code(statusOf(ROUTES[name]))
        .type('application/json; charset=utf-8')
        .send(JSON.stringify(checked(name, answer.value)))
    case 'events': {
      const onError = (thrown: unknown): AirlockError => seenFault(thrown, exchange)
      const frames = eventFrames(answer.events, { onError })
      const onGone = (): void => void reply.raw.destroy()
      const patient = answer.slow ? cutWhenSlow(frames, { ...answer.slow, onGone }) : frames
      return reply.type('text/event-stream').send(textStream(patient))
    }
    case 'frames':
      return reply.type('text/event-stream').send(textStream(withHeartbeat(answer.frames, exchange)))
    case 'bytes':
      return reply
        .headers({
          ...(answer.size === undefined ? {} : { 'content-length': answer.size }),
          'content-disposition': 'attachment',
        })
        .type(answer.type ?? 'application/octet-stream')
        .send(Readable.from(exactly(answer.size, answer.bytes), { highWaterMark: 1 }))
    case 'lines':
      return reply.type('application/x-ndjson').send(textStream(answer.lines))
    case 'text':
      if (answer.policy !== undefined) reply.header('content-security-policy', answer.policy)
      return reply.type(answer.type).send(answer.text)
    case 'none':
      return reply.code(204).send()
  }
}

function statusOf({ status }: Route): number {
  return status ?? 200
}

/** Answers an error in the one shape. The text of an error that is not ours is logged, and never sent. */
export function sendError(thrown: unknown, exchange: Exchange): void {
  const { request, reply } = exchange
  const error = seenFault(thrown, exchange)
  if (reply.raw.headersSent || reply.raw.destroyed) return void reply.raw.destroy()
  reply.removeHeader('content-length').removeHeader('content-disposition')
  reply.code(error.status).type('application/json; charset=utf-8')
  if (error.retryAfterS !== undefined) reply.header('retry-after', error.retryAfterS)
  if (error.code === 'unauthenticated')
    reply.headers({ 'www-authenticate': 'Bearer realm="airlock"', connection: 'close' })
  const text = isOpenai(request.routeName) ? openaiText(error, exchange) : errorText(error, request.id)
  if (!hasBody(request.headers) || request.raw.complete) return void reply.send(text)
  reply.hijack()
  answerAndDrain(exchange, text)
}

/** Their SDK sends again on many statuses, and that would be another run: only what did not begin may be sent again. */
function openaiText(error: AirlockError, { request, reply }: Exchange): string {
  reply.header('x-should-retry', String(error.retryable && NOT_BEGUN.has(error.code)))
  const { code, message, hint, retryable, approval } = error
  const ours = { hint, retryable, requestId: request.id, approval }
  return JSON.stringify({ error: { ...openaiError({ code, message }), ...ours } })
}

const NOT_BEGUN: ReadonlySet<ErrorCode> = new Set(['too_many_requests', 'queue_full'])

/** A stream of another API: comments keep it alive, and a fault is a frame that its clients know. */
function withHeartbeat(frames: AsyncIterable<string>, exchange: Exchange): AsyncGenerator<string> {
  const onError = (thrown: unknown): string =>
    `data: ${JSON.stringify({ error: openaiError(seenFault(thrown, exchange)) })}\n\n`
  return beatingFrames(frames, { onError })
}

export function errorText(error: AirlockError, requestId: string): string {
  const { code, message, hint, retryable, approval } = error
  return JSON.stringify({ error: { code, message, hint, retryable, requestId, approval } })
}

/** What a caller may see of a fault; what he may not is logged with the request id. */
function seenFault(thrown: unknown, { request, reply, log, closing }: Exchange): AirlockError {
  if (closing.aborted && !isAirlockError(thrown)) return new AirlockError('not_ready', 'The server is stopping.')
  const error = fromFastify(thrown) ?? toAirlockError(thrown)
  const isFault = error.status === 500 && !reply.raw.destroyed
  if (isFault)
    log.error('request failed', { requestId: request.id, route: request.routeName, code: error.code, error: thrown })
  return error
}

/** The few of fastify's own errors that a client can cause. */
function fromFastify(thrown: unknown): AirlockError | undefined {
  if (isAirlockError(thrown) || !(thrown instanceof Error) || !('code' in thrown)) return undefined
  switch (thrown.code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new AirlockError('unsupported_media_type')
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new AirlockError('invalid_request', 'The path of the URL is not valid.')
    default:
      return undefined
  }
}

/** The value as the response schema of the route says; throws when it does not fit. */
export function checked(name: RouteName, value: unknown): unknown {
  const route: Route = ROUTES[name]
  if (!route.response) return value
  const parsed = route.response.safeParse(value)
  if (parsed.success) return parsed.data
  throw new AirlockError('internal', undefined, { cause: parsed.error })
}

function textStream(lines: AsyncIterable<string>): Readable {
  return Readable.from(lines, { highWaterMark: 1 })
}

/** Answers while the client still sends, then closes: a reset before it has read would hide the answer from it. */
function answerAndDrain({ request, reply }: Exchange, text: string): void {
  const { raw } = reply
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value)
  raw.writeHead(reply.statusCode, { connection: 'close', 'content-length': Buffer.byteLength(text) })
  raw.write(text)
  const isWithin = request.admitted !== null && !request.admitted.isBeyond
  endWhenHeard(request.raw, raw, isWithin && isUpload(request.routeName) ? UPLOAD_DRAIN : undefined)
}
