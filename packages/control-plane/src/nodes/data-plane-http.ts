import { Agent, type IncomingMessage, request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AirlockError, isAirlockError, isErrorCode } from '@airlock/contract'
import { deadline } from '@airlock/std'
import { z } from 'zod'

/** A directory listing with the longest names fits. */
const MAX_JSON_BYTES = 64 * 1024 * 1024
const IDLE_CONNECTIONS = 32

interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly json?: unknown
  readonly bytes?: AsyncIterable<Buffer>
  /** How long until the first byte of the answer; the answer itself ends with `signal`. */
  readonly answerMs: number
  readonly signal?: AbortSignal
  /** `same` when doing it twice is doing it once: then a kept connection that just died is tried again. */
  readonly again: 'same' | 'different'
}

const errorBody = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

/**
 * HTTP over the data plane's socket. A data plane that is not there, hangs up or does not answer in time is
 * `data_plane_unavailable`: what was asked may or may not have happened. Every other error is its own answer.
 */
export class DataPlaneHttp {
  readonly #socketPath: string
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: IDLE_CONNECTIONS })

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  async json<T>(call: HttpCall, schema: z.ZodType<T>): Promise<T> {
    const until = deadline(call.answerMs, call.signal)
    const response = await this.stream({ ...call, signal: until })
    const parsed = schema.safeParse(await readJson(response).catch((error: unknown) => throwUnanswered(error, call)))
    if (parsed.success) return parsed.data
    throw new AirlockError('internal', 'The data plane answered something that was not agreed.', {
      cause: parsed.error,
    })
  }

  /** The answer as it comes, when it is not an error. Destroyed when the call's signal aborts. */
  async stream(call: HttpCall): Promise<IncomingMessage> {
    let response: IncomingMessage
    try {
      response = await this.#open(call)
    } catch (error) {
      throwUnanswered(error, call)
    }
    if ((response.statusCode ?? 500) < 400) return response
    throw await readError(response)
  }

  close(): void {
    this.#agent.destroy()
  }

  async #open(call: HttpCall): Promise<IncomingMessage> {
    try {
      return await this.#send(call)
    } catch (error) {
      if (!(error instanceof StaleConnection) || call.again === 'different') throw error
      // The first may have been heard: that nobody hears the second does not tell that nothing happened.
      return await this.#send({ ...call, again: 'different' }).catch((second: unknown) => {
        throw new StaleConnection(second)
      })
    }
  }

  async #send(call: HttpCall): Promise<IncomingMessage> {
    const body = call.json === undefined ? undefined : Buffer.from(JSON.stringify(call.json))
    const outgoing = request({
      socketPath: this.#socketPath,
      // What must not happen twice gets a connection of its own, which cannot have died before it was used.
      agent: call.again === 'same' ? this.#agent : false,
      method: call.method,
      path: call.path,
      headers: body ? { 'content-type': 'application/json', 'content-length': body.length } : {},
      ...(call.signal ? { signal: call.signal } : {}),
    })
    const source = call.bytes && new Source(call.bytes)
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      const late = setTimeout(() => outgoing.destroy(new AirlockError('data_plane_unavailable')), call.answerMs)
      outgoing.once('response', (response) => {
        clearTimeout(late)
        resolve(response)
      })
      outgoing.once('close', () => clearTimeout(late))
      outgoing.on('error', (error) => {
        const stale = outgoing.reusedSocket && isReset(error) ? new StaleConnection(error) : undefined
        reject(source?.fault ?? stale ?? error)
      })
    })
    if (source) void upload(source, outgoing)
    else outgoing.end(body)
    return answer
  }
}

/** Failing to send fails the request, whose 'error' the caller hears; after an early answer it no longer matters. */
async function upload(source: Source, outgoing: ReturnType<typeof request>): Promise<void> {
  outgoing.once('response', (response) => response.once('end', () => outgoing.destroy()))
  try {
    await pipeline(Readable.from(source, { objectMode: false }), outgoing)
  } catch {
    outgoing.destroy()
  }
}

/** A body that breaks off is the caller's doing, not the data plane's; the connection's own error would not tell. */
class Source implements AsyncIterable<Buffer> {
  readonly #bytes: AsyncIterable<Buffer>
  fault: AirlockError | undefined

  constructor(bytes: AsyncIterable<Buffer>) {
    this.#bytes = bytes
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of this.#bytes) yield chunk
    } catch (cause) {
      this.fault = isAirlockError(cause) ? cause : new AirlockError('invalid_request', 'The body broke off.', { cause })
      throw this.fault
    }
  }
}

class StaleConnection extends Error {
  constructor(cause: unknown) {
    super('a kept connection died', { cause })
    this.name = 'StaleConnection'
  }
}

function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
}

/** Errors of the caller (its abort, a body that fails) stay what they are; all others mean that nobody answers. */
function throwUnanswered(error: unknown, call: HttpCall): never {
  if (isAirlockError(error)) throw error
  if (call.signal?.aborted && !isTimeout(call.signal.reason)) throw call.signal.reason
  throw new AirlockError('data_plane_unavailable', undefined, { cause: error })
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError'
}

async function readError(response: IncomingMessage): Promise<AirlockError> {
  const parsed = errorBody.safeParse(await readJson(response).catch(() => undefined))
  if (!parsed.success || !isErrorCode(parsed.data.error.code))
    return new AirlockError('internal', `The data plane answered ${response.statusCode} and no reason.`)
  return new AirlockError(parsed.data.error.code, parsed.data.error.message)
}

async function readJson(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of bytesOf(response)) {
    bytes += chunk.length
    if (bytes > MAX_JSON_BYTES) throw new AirlockError('internal', 'The answer of the data plane is too long.')
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString('utf8')
  try {
    return JSON.parse(text)
  } catch {
    throw new AirlockError('internal', 'The data plane answered something that is not JSON.')
  }
}

/** The bytes of an answer, read as fast as they are taken. An answer that breaks off is `data_plane_unavailable`. */
export async function* bytesOf(response: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response) if (Buffer.isBuffer(chunk)) yield chunk
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') throw error
    throw new AirlockError('data_plane_unavailable', undefined, { cause: error })
  }
}
