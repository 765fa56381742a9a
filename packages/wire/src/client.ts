import { Agent, type IncomingMessage, request } from 'node:http'
import { AirlockError, isAirlockError, isErrorCode } from '@airlock/contract'
import { deadline } from '@airlock/std'
import { z } from 'zod'
import { type Address, requestTo } from './address.ts'
import { decodeText, parseJson, readBounded } from './bounded-json.ts'
import { askOnceMore, BrokenConnection } from './kept-connection.ts'
import { Source, upload } from './upload.ts'

const IDLE_CONNECTIONS = 32

export interface WireClientOptions {
  readonly address: Address
  /** What errors call it, after "the". */
  readonly peer: string
  /** What it means that nobody is there, hangs up or does not answer in time: what was asked may or may not have happened. */
  readonly unavailable: (cause: unknown) => AirlockError
  /** No JSON of the peer is longer. */
  readonly maxJsonBytes: number
}

export interface WireCall {
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

/** HTTP to one peer. An error is either `unavailable`, or the peer's own answer, or `internal` and names the peer. */
export class WireClient {
  readonly #options: WireClientOptions
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: IDLE_CONNECTIONS })

  constructor(options: WireClientOptions) {
    this.#options = options
  }

  async json<T>(call: WireCall, schema: z.ZodType<T>): Promise<T> {
    const until = deadline(call.answerMs, call.signal)
    const response = await this.stream({ ...call, signal: until })
    const value = await this.#readJson(response, call.answerMs).catch((error: unknown) =>
      this.#throwUnanswered(error, call),
    )
    const parsed = schema.safeParse(value)
    if (parsed.success) return parsed.data
    throw this.#broken('answered something that was not agreed', parsed.error)
  }

  /** The answer as it comes, when it is not an error. Destroyed when the call's signal aborts. */
  async stream(call: WireCall): Promise<IncomingMessage> {
    let response: IncomingMessage
    try {
      response = await this.#open(call)
    } catch (error) {
      this.#throwUnanswered(error, call)
    }
    if ((response.statusCode ?? 500) < 400) return response
    throw await this.#readError(response, call)
  }

  /** The bytes of an answer, read as fast as they are taken. An answer that breaks off is `unavailable`. */
  async *bytesOf(response: IncomingMessage): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of response) if (Buffer.isBuffer(chunk)) yield chunk
    } catch (error) {
      if (error instanceof Error && error.name === 'AbortError') throw error
      throw this.#options.unavailable(error)
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  async #open(call: WireCall): Promise<IncomingMessage> {
    const fresh = async () => this.#send({ ...call, again: 'different' })
    return call.again === 'same' ? askOnceMore(async () => this.#send(call), fresh) : fresh()
  }

  async #send(call: WireCall): Promise<IncomingMessage> {
    const body = call.json === undefined ? undefined : Buffer.from(JSON.stringify(call.json))
    const outgoing = request({
      ...requestTo(this.#options.address),
      // What must not happen twice gets a connection of its own, which cannot have died before it was used.
      agent: call.again === 'same' ? this.#agent : false,
      method: call.method,
      path: call.path,
      headers: body ? { 'content-type': 'application/json', 'content-length': body.length } : {},
      ...(call.signal ? { signal: call.signal } : {}),
    })
    const source = call.bytes && new Source(call.bytes)
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      const late = setTimeout(() => outgoing.destroy(this.#options.unavailable(undefined)), call.answerMs)
      outgoing.once('response', (response) => {
        clearTimeout(late)
        resolve(response)
      })
      outgoing.once('close', () => clearTimeout(late))
      outgoing.on('error', (error) => {
        const broken = outgoing.reusedSocket && isReset(error) ? new BrokenConnection(error) : undefined
        reject(source?.fault ?? broken ?? error)
      })
    })
    if (source) void upload(source, outgoing)
    else outgoing.end(body)
    return answer
  }

  /** Unlike a request, an answer of nothing is not `{}`: it says nothing, and so not that it was done. */
  async #readJson(response: IncomingMessage, ms: number): Promise<unknown> {
    const bytes = await readBounded(response, { maxBytes: this.#options.maxJsonBytes, ms }).catch((error: unknown) => {
      response.destroy()
      if (!isAirlockError(error)) throw error
      throw error.code === 'body_too_large' ? this.#broken('answered too much') : this.#options.unavailable(error)
    })
    try {
      return parseJson(decodeText(bytes))
    } catch (error) {
      throw this.#broken('answered something that is not JSON', error)
    }
  }

  async #readError(response: IncomingMessage, call: WireCall): Promise<AirlockError> {
    const parsed = errorBody.safeParse(await this.#readJson(response, call.answerMs).catch(() => undefined))
    if (!parsed.success || !isErrorCode(parsed.data.error.code))
      return this.#broken(`answered ${response.statusCode} and no reason`)
    return new AirlockError(parsed.data.error.code, parsed.data.error.message)
  }

  #broken(what: string, cause?: unknown): AirlockError {
    return new AirlockError('internal', `The ${this.#options.peer} ${what}.`, { cause })
  }

  /** Errors of the caller (its abort, a body that fails) stay what they are; all others mean that nobody answers. */
  #throwUnanswered(error: unknown, { signal }: WireCall): never {
    if (isAirlockError(error)) throw error
    if (signal?.aborted && !isTimeout(signal.reason)) throw signal.reason
    throw this.#options.unavailable(error)
  }
}

function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError'
}
