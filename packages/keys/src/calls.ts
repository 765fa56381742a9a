import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  AirlockError,
  anthropicVersion,
  type AnthropicVersion,
  CALL_HEADERS,
  isAirlockError,
  MODEL_BODY_BYTES,
  type Reservation,
} from '@airlock/contract'
import { OutgoingBody } from './body/outgoing.ts'
import type { ReservationDesk } from './reservations.ts'
import type { Answer } from './upstream/answer.ts'
import type { Upstream } from './upstream/upstream.ts'

interface CallsOptions {
  readonly reservations: ReservationDesk
  readonly upstreams: ReadonlyMap<string, Upstream>
}

/** Bound on all bodies together that wait for an answer to begin. */
const MOST_BODY_BYTES = 8 * MODEL_BODY_BYTES

/** Every header that a call may have. */
const KNOWN: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-type',
  'content-length',
  CALL_HEADERS.reservation,
  CALL_HEADERS.version,
])

/** Calls of models, each against a reservation. Everything that the doors say is compared with it. */
export class Calls {
  readonly #options: CallsOptions
  #bodyBytes = 0

  constructor(options: CallsOptions) {
    this.#options = options
  }

  /** Throws before the first byte of an answer; from then on the trailer tells how it ended. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => gone.abort(new AirlockError('timeout', 'The caller is gone.')))
    const { length, text, version } = readHead(request)
    const reservation = this.#options.reservations.take(text)
    const upstream = this.#upstreamOf(reservation)
    const place = upstream.enter()
    try {
      const answer = await this.#send({ request, length, version, reservation, upstream, signal: gone.signal })
      await relay(answer, response, gone.signal)
    } catch (error) {
      // Nobody is there to be told.
      if (!gone.signal.aborted) throw error
    } finally {
      place.leave()
    }
  }

  #upstreamOf(reservation: Reservation): Upstream {
    const upstream = this.#options.upstreams.get(reservation.upstream)
    if (upstream === undefined)
      throw new AirlockError('reservation_rejected', `There is no upstream ${reservation.upstream}.`)
    upstream.assertServes(reservation)
    return upstream
  }

  async #send({ request, length, version, reservation, upstream, signal }: Sending): Promise<Answer> {
    if (this.#bodyBytes + length > MOST_BODY_BYTES)
      throw new AirlockError('upstream_busy', 'Too many large bodies are on their way.', { retryAfterS: 1 })
    this.#bodyBytes += length
    try {
      const body = new OutgoingBody()
      // A refusal leaves the connection whole, so that it is heard.
      for await (const chunk of chunksOf(request)) body.push(chunk)
      return await upstream.send({ reservation, body: body.end(reservation, upstream.kind), version }, signal)
    } finally {
      this.#bodyBytes -= length
    }
  }
}

interface Sending {
  readonly request: IncomingMessage
  readonly length: number
  readonly version: AnthropicVersion | undefined
  readonly reservation: Reservation
  readonly upstream: Upstream
  readonly signal: AbortSignal
}

function chunksOf(request: IncomingMessage): AsyncIterable<Buffer> {
  return request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
}

interface Head {
  readonly length: number
  readonly text: string
  readonly version: AnthropicVersion | undefined
}

/** Fails closed: a header that we do not know, or a body whose length is not said once, is no call. */
function readHead({ headers, rawHeaders }: IncomingMessage): Head {
  const names = rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  const unknown = names.find((name, at) => !KNOWN.has(name) || names.indexOf(name) !== at)
  if (unknown !== undefined) throw new AirlockError('invalid_request', 'A call has a header that it must not have.')
  const text = headers[CALL_HEADERS.reservation]
  if (typeof text !== 'string') throw new AirlockError('reservation_rejected', 'The call has no reservation.')
  if (headers['content-type'] !== 'application/json') throw new AirlockError('unsupported_media_type')
  const length = Number(/^\d{1,9}$/.exec(headers['content-length'] ?? '')?.[0] ?? NaN)
  if (Number.isNaN(length)) throw new AirlockError('invalid_request', 'A call says the length of its body.')
  if (length > MODEL_BODY_BYTES) throw new AirlockError('body_too_large')
  const version = anthropicVersion.optional().safeParse(headers[CALL_HEADERS.version])
  if (!version.success) throw new AirlockError('invalid_request', 'The version of the API is not in the list.')
  return { length, text, version: version.data }
}

/** Passes an answer on as fast as the caller reads it. */
async function relay(answer: Answer, response: ServerResponse, signal: AbortSignal): Promise<void> {
  try {
    response.writeHead(200, {
      ...answer.headers,
      [CALL_HEADERS.status]: answer.status,
      'transfer-encoding': 'chunked',
      trailer: CALL_HEADERS.end,
    })
    // The head of a stream goes out before its first event.
    response.flushHeaders()
    const end = await relayBody(answer, response, signal)
    response.addTrailers({ [CALL_HEADERS.end]: end })
    response.end()
  } finally {
    answer.close()
  }
}

/** Answers the value of the trailer. */
async function relayBody(answer: Answer, response: ServerResponse, signal: AbortSignal): Promise<string> {
  try {
    for await (const piece of answer.body) if (!response.write(piece)) await once(response, 'drain', { signal })
    // The doors read the events, and know the last one.
    return answer.isFramed ? 'whole' : 'upstream_broken'
  } catch (error) {
    if (signal.aborted || !isAirlockError(error)) throw error
    return error.code
  }
}
