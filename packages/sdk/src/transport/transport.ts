import type { RouteName, RouteOutput } from '@airlock/contract'
import { AirlockError, parseErrorAnswer } from '../errors.ts'
import type { LocalTrees } from '../node/local-trees.ts'
import { ROUTE_TABLE } from '../route-table.ts'

export type Bytes = string | Uint8Array | AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>

export interface Call {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  readonly bytes?: Bytes
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

/** Where the server is, and who asks. */
export interface Connection {
  readonly url: string
  /** Headers that show who asks. Throws when there is nothing to show. */
  credentials(): Readonly<Record<string, string>>
  /** Says an error of the server in words that fit where the credentials are from. */
  explain(error: AirlockError): AirlockError
  /** Says why no answer came, and what to do. */
  describeBroken(cause: unknown): { readonly message: string; readonly hint: string }
  /** Directories of this machine. A browser has none. */
  readonly trees?: LocalTrees
}

export interface TransportOptions {
  readonly fetch?: typeof globalThis.fetch | undefined
  /** How long a call waits, in seconds, when a person must approve it first: at most 240, and not at all when absent. */
  readonly waitApprovalS?: number | undefined
}

const RETRIES = 2
const BACKOFF_MS = 100
/** A server that asks for more patience than this gets its error passed on instead. */
const MAX_RETRY_AFTER_S = 5

/**
 * Speaks HTTP for the rest of the SDK: addresses, keys, errors, and the retries that cannot do harm.
 * @internal
 */
export class Transport {
  readonly #connection: Connection
  readonly #fetch: typeof globalThis.fetch
  readonly #headers: Readonly<Record<string, string>>

  constructor(connection: Connection, options: TransportOptions = {}) {
    this.#connection = connection
    // A browser refuses to fetch for another object than its window.
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis)
    this.#headers = waitHeader(options.waitApprovalS)
  }

  get url(): string {
    return this.#connection.url
  }

  /** Directories of this machine. Throws in a browser. */
  get trees(): LocalTrees {
    const { trees } = this.#connection
    if (trees) return trees
    throw new AirlockError('invalid_request', 'A browser has no directories.', {
      hint: 'Use writeArchive and readArchive.',
    })
  }

  async json<N extends RouteName>(name: N, call: Call = {}): Promise<RouteOutput<N>> {
    const response = await this.send(name, call)
    return parseJsonAnswer<N>(await response.text())
  }

  /** Answers a response with a good status; throws `AirlockError` for every other. */
  async send(name: RouteName, call: Call = {}): Promise<Response> {
    for (let attempt = 0; ; attempt++) {
      call.signal?.throwIfAborted()
      const outcome = await this.#attempt(name, call)
      if (!('error' in outcome)) return outcome
      const waitMs = attempt < RETRIES ? retryDelay(name, call, outcome) : undefined
      if (waitMs === undefined) throw outcome.error
      await pause(waitMs * 2 ** attempt, call.signal)
    }
  }

  async #attempt(name: RouteName, call: Call): Promise<Response | Failure> {
    const request = this.#request(name, call)
    try {
      const response = await this.#fetch(request.url, request.init)
      if (response.ok) return response
      return { error: this.#connection.explain(await parseErrorAnswer(response)), nothingSent: false }
    } catch (cause) {
      if (call.signal?.aborted) throw call.signal.reason
      return this.#unreachable(cause)
    }
  }

  #request(name: RouteName, call: Call): { readonly url: URL; readonly init: RequestInit } {
    const credentials = this.#connection.credentials()
    const { method, path } = ROUTE_TABLE[name]
    const url = new URL(fillPath(path, call.params ?? {}), this.#connection.url)
    for (const [key, value] of Object.entries(call.query ?? {}))
      if (value !== undefined) url.searchParams.set(key, String(value))
    const headers = new Headers({ ...credentials, ...this.#headers, ...call.headers })
    if (call.body !== undefined) headers.set('content-type', 'application/json')
    const body = call.bytes === undefined ? jsonBody(call.body) : streamBody(call.bytes)
    const signal = call.signal === undefined ? {} : { signal: call.signal }
    return { url, init: { method, headers, redirect: 'error', ...body, ...signal } }
  }

  #unreachable(cause: unknown): Failure {
    const { message, hint } = this.#connection.describeBroken(cause)
    const nothingSent = isRefused(cause)
    return { error: new AirlockError('server_unreachable', message, { cause, hint }), nothingSent }
  }
}

/** The server waits for 300 seconds, but whoever fetches gives up then. */
const MAX_WAIT_S = 240

function waitHeader(seconds: number | undefined): Readonly<Record<string, string>> {
  if (seconds === undefined) return {}
  return { 'airlock-wait-approval': String(Math.max(0, Math.min(MAX_WAIT_S, Math.round(seconds)))) }
}

const REFUSED = /^ECONNREFUSED$/
interface Failure {
  readonly error: AirlockError
  /** The connection was refused: the server cannot have seen the request. */
  readonly nothingSent: boolean
}

/** Undefined when trying again could do something twice, or is not worth it. */
function retryDelay(name: RouteName, call: Call, { error, nothingSent }: Failure): number | undefined {
  const isReplayable = call.bytes === undefined || typeof call.bytes === 'string' || call.bytes instanceof Uint8Array
  if (!isReplayable) return undefined
  if (nothingSent) return BACKOFF_MS
  if (ROUTE_TABLE[name].repeats === 'unsafe' || !error.retryable) return undefined
  const { retryAfterS } = error
  if (retryAfterS === undefined) return BACKOFF_MS
  return retryAfterS <= MAX_RETRY_AFTER_S ? retryAfterS * 1000 : undefined
}

function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
}

function jsonBody(body: unknown): RequestInit {
  return body === undefined ? {} : { body: JSON.stringify(body) }
}

function streamBody(bytes: Bytes): RequestInit {
  if (typeof bytes === 'string') return { body: bytes }
  if (bytes instanceof Uint8Array) return { body: new Uint8Array(bytes) }
  // Not every description of a request knows `duplex`, and streams need it.
  const streamed = { body: bytes instanceof ReadableStream ? bytes : toStream(bytes), duplex: 'half' } as const
  return streamed
}

function toStream(bytes: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = bytes[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Trusts the server's shape: it checks every answer against the contract before it sends it. */
function parseJsonAnswer<N extends RouteName>(text: string): RouteOutput<N> {
  if (text === '') return undefined as RouteOutput<N>
  try {
    return JSON.parse(text) as RouteOutput<N>
  } catch (cause) {
    throw new AirlockError('internal', 'The server answered something that is not JSON.', {
      cause,
      hint: 'Check that AIRLOCK_URL is an Airlock server.',
    })
  }
}

/** Nobody listened: the server cannot have seen the request. */
export function isRefused(cause: unknown): boolean {
  return isCausedBy(cause, REFUSED)
}

export function isCausedBy(cause: unknown, codes: RegExp): boolean {
  if (typeof cause !== 'object' || cause === null) return false
  if ('code' in cause && typeof cause.code === 'string' && codes.test(cause.code)) return true
  if ('errors' in cause && Array.isArray(cause.errors)) return cause.errors.every((error) => isCausedBy(error, codes))
  return 'cause' in cause && isCausedBy(cause.cause, codes)
}

/** A body as it comes. Not every browser can iterate a stream. */
export async function* chunksIn(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  let isOver = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      isOver = done
      if (done) return
      yield value
    }
  } catch (error) {
    isOver = true
    throw error
  } finally {
    // Whoever leaves early closes the connection.
    if (!isOver) await reader.cancel()
  }
}

/** Waits; throws the signal's reason when it aborts. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
