import { Agent, type ClientRequest, type IncomingMessage, request as dial } from 'node:http'
import {
  AirlockError,
  type AnthropicVersion,
  CALL_HEADERS,
  type ErrorCode,
  isAirlockError,
  isErrorCode,
  keysHealth,
  type KeysHealth,
  type SendTool,
  TOOL_BOUNDS,
  toolAnswer,
  type ToolAnswer,
} from '@airlock/contract'
import { decodeText, parseJson, readBounded } from '@airlock/wire'
import { z } from 'zod'

export interface KeysCall {
  readonly reservation: string
  readonly version: AnthropicVersion
  readonly body: Buffer
}

/** The answer of an upstream, head first. */
export interface KeysAnswer {
  readonly status: number
  readonly contentType: string | undefined
  readonly retryAfter: string | undefined
  /** Throws an `AirlockError` when the answer did not come whole. */
  readonly body: AsyncIterable<Buffer>
}

/** Longer than the longest read timeout of an upstream: `keys` itself was stopped. */
const SILENCE_MS = 25 * 3_600_000
const MAX_IDLE = 64
/** Less than the control plane waits for an answer. */
const HEALTH_MS = 1_000
const MAX_HEALTH_BYTES = 256 * 1024
const MAX_ERROR_BYTES = 64 * 1024
const NOT_DIALLED: ReadonlySet<unknown> = new Set(['ENOENT', 'ECONNREFUSED', 'EAGAIN', 'EACCES'])

/** More than any call of a tool may take: `keys` itself was stopped. */
const TOOL_MS = TOOL_BOUNDS.timeoutMs + 10_000
/** The body in base64, and its head. */
const MAX_TOOL_ANSWER = 2 * TOOL_BOUNDS.answerBytes

/** Codes of `keys` for a call of which no byte was sent. */
const UNSENT: ReadonlySet<ErrorCode> = new Set([
  'body_too_large',
  'invalid_request',
  'key_unavailable',
  'not_ready',
  'reservation_rejected',
  'route_not_found',
  'unsupported_media_type',
  'upstream_busy',
  'upstream_unavailable',
])

/** Whether an error of `send` says that the upstream has not seen the call. */
export function isUnsent({ code }: AirlockError): boolean {
  return UNSENT.has(code)
}

const refusal = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

/** The process `keys`, over its unix socket: the table of `contract/keys-api.ts`. */
export class KeysClient {
  readonly #socket: string
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE })

  constructor(socket: string) {
    this.#socket = socket
  }

  /** Sends one call, once. The signal ends it, also while its answer is read. */
  async send(call: KeysCall, signal: AbortSignal): Promise<KeysAnswer> {
    const response = await answered(this.#dial(call, signal), call.body)
    if (response.statusCode !== 200) throw await errorOf(response)
    const { headers } = response
    const status = Number(headers[CALL_HEADERS.status])
    if (!Number.isInteger(status)) throw new AirlockError('upstream_broken')
    return { status, contentType: headers['content-type'], retryAfter: headers['retry-after'], body: bodyOf(response) }
  }

  /** Sends one call of a tool, once, and has its whole answer. The signal ends it. */
  async callTool(call: SendTool, signal: AbortSignal): Promise<ToolAnswer> {
    const body = Buffer.from(JSON.stringify(call))
    const request = dial({
      socketPath: this.#socket,
      agent: this.#agent,
      method: 'POST',
      path: '/tool',
      headers: { host: 'keys', 'content-type': 'application/json', 'content-length': body.length },
      timeout: TOOL_MS,
      signal,
    })
    try {
      const response = await answered(request, body)
      if (response.statusCode !== 200) throw await errorOf(response)
      return toolAnswer.parse(parseJson(decodeText(await readBounded(response, { maxBytes: MAX_TOOL_ANSWER }))))
    } catch (error) {
      throw toolError(error)
    }
  }

  /** Throws `not_ready` when `keys` does not answer. */
  async health(): Promise<KeysHealth> {
    try {
      const signal = AbortSignal.timeout(HEALTH_MS)
      const request = dial({ socketPath: this.#socket, agent: this.#agent, path: '/health', signal })
      const response = await answered(request)
      return keysHealth.parse(parseJson(decodeText(await readBounded(response, { maxBytes: MAX_HEALTH_BYTES }))))
    } catch (cause) {
      throw new AirlockError('not_ready', 'The process that holds the keys does not answer.', { cause })
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  #dial({ reservation, version, body }: KeysCall, signal: AbortSignal): ClientRequest {
    return dial({
      socketPath: this.#socket,
      agent: this.#agent,
      method: 'POST',
      path: '/call',
      headers: {
        host: 'keys',
        'content-type': 'application/json',
        'content-length': body.length,
        [CALL_HEADERS.reservation]: reservation,
        [CALL_HEADERS.version]: version,
      },
      timeout: SILENCE_MS,
      signal,
    })
  }
}

/** `keys` is another process: its loss is ours to explain, not the service's. */
function toolError(error: unknown): AirlockError {
  if (!isAirlockError(error)) return new AirlockError('service_broken', undefined, { cause: error })
  const { code, message, cause } = error
  if (code === 'upstream_unavailable')
    return new AirlockError('not_ready', 'The process that holds the keys is away.', { cause })
  if (code === 'upstream_broken') return new AirlockError('service_broken', undefined, { cause })
  if (code === 'reservation_rejected')
    return new AirlockError('not_ready', `The call was not sent: ${message}`, { cause })
  return error
}

async function answered(request: ClientRequest, body?: Buffer): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  request.once('response', resolve)
  request.once('timeout', () => request.destroy())
  // Stays: an error may follow the answer, which says it as well.
  request.on('error', (cause: NodeJS.ErrnoException) =>
    reject(
      new AirlockError(NOT_DIALLED.has(cause.code) ? 'upstream_unavailable' : 'upstream_broken', undefined, { cause }),
    ),
  )
  request.end(body)
  return promise
}

/** Text of `keys` is ours; it says nothing of a key. */
async function errorOf(response: IncomingMessage): Promise<AirlockError> {
  const bytes = await readBounded(response, { maxBytes: MAX_ERROR_BYTES })
  const said = refusal.safeParse(parseJson(decodeText(bytes))).data?.error
  if (said === undefined || !isErrorCode(said.code)) return new AirlockError('upstream_broken')
  const seconds = Number(response.headers['retry-after'])
  return new AirlockError(said.code, said.message, seconds > 0 ? { retryAfterS: seconds } : {})
}

async function* bodyOf(response: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response) yield chunk as Buffer
  } catch (cause) {
    throw new AirlockError('upstream_broken', undefined, { cause })
  }
  const { [CALL_HEADERS.end]: end = '' } = response.trailers
  if (end !== 'whole') throw new AirlockError(isErrorCode(end) ? end : 'upstream_broken')
}
