import {
  AirlockError,
  type AnthropicVersion,
  isAirlockError,
  type Reservation,
  ROUTES_OF_KIND,
  type UpstreamHealth,
} from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { Dispatcher } from 'undici'
import { type Key, parseKey } from '../secret/key.ts'
import { Scrubber, throwOnLeak } from '../secret/scrubber.ts'
import { WatchedFile } from '../watched-file.ts'
import { type Answer, checkHead, readFailure, readWhole } from './answer.ts'
import { Breaker } from './breaker.ts'
import { codeOf, NotConnected } from './connect.ts'
import { passedHeaders, pathOf, requestHeaders, type Target } from './heads.ts'
import { type PoolSettings, TenantPools } from './pools.ts'
import { type Holder, Shares } from './shares.ts'

export interface UpstreamOptions extends Target, PoolSettings {
  readonly name: string
  /** The upstream's names of its models. */
  readonly models: ReadonlySet<string>
  /** Null for an upstream without one. */
  readonly keyFile: string | null
  readonly log: Log
}

interface Sending {
  readonly reservation: Reservation
  readonly body: Buffer
  readonly version: AnthropicVersion | undefined
}

interface Sent {
  readonly key: Key | undefined
  readonly release: () => void
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal
}

/** An upstream with its key, its connections and its latest state. */
export class Upstream {
  readonly #options: UpstreamOptions
  readonly #key: WatchedFile<Key> | undefined
  readonly #pools: TenantPools
  readonly #breaker = new Breaker()
  readonly #shares: Shares
  #calls = 0
  #lastStatus: number | null = null
  #lastError: string | null = null

  constructor(options: UpstreamOptions) {
    this.#options = options
    this.#key = options.keyFile === null ? undefined : new WatchedFile(options.keyFile, parseKey)
    this.#pools = new TenantPools(options)
    this.#shares = new Shares(options.connections)
  }

  get kind(): Target['kind'] {
    return this.#options.kind
  }

  get health(): UpstreamHealth {
    return {
      name: this.#options.name,
      kind: this.kind,
      key: this.#keyState,
      lastStatus: this.#lastStatus,
      lastError: this.#lastError,
      breaker: this.#breaker.state,
      calls: this.#calls,
    }
  }

  /** Throws `reservation_rejected` when it has no such route or model, whatever was signed. */
  assertServes({ route, model }: Reservation): void {
    const { kind, models, name } = this.#options
    if (!ROUTES_OF_KIND[kind].includes(route))
      throw new AirlockError('reservation_rejected', `Upstream ${name} has no route ${route}.`)
    if (!models.has(model)) throw new AirlockError('reservation_rejected', `Upstream ${name} does not list the model.`)
  }

  /** A place among its calls, within the share of the sandbox and its tenant, until `leave`. */
  enter(holder: Holder): { leave(): void } {
    if (!this.#shares.take(holder)) throw new AirlockError('upstream_busy', undefined, { retryAfterS: 1 })
    this.#calls += 1
    const leave = () => {
      this.#calls -= 1
      this.#shares.give(holder)
    }
    return { leave }
  }

  /** Sends one request. The answer is read as fast as `Answer.body` is taken, until `Answer.close`. */
  async send({ reservation, body, version }: Sending, signal: AbortSignal): Promise<Answer> {
    const key = this.#readKey()
    const use = this.#pools.acquire(reservation.tenant)
    const release = () => use.release()
    this.#enterBreaker(release)
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), this.#options.connectMs + this.#options.firstByteMs)
    try {
      const response = await use.pool.request({
        method: 'POST',
        path: pathOf(this.#options, reservation.route),
        headers: requestHeaders(this.kind, key, reservation, version),
        body,
        signal: AbortSignal.any([signal, late.signal]),
      })
      return await this.#answer(response, { key, release, signal })
    } catch (error) {
      release()
      throw this.#failure(late.signal.aborted ? new AirlockError('upstream_timeout') : error, signal)
    } finally {
      clearTimeout(timer)
    }
  }

  async close(): Promise<void> {
    await this.#pools.close()
  }

  #enterBreaker(release: () => void): void {
    try {
      this.#breaker.enter()
    } catch (error) {
      release()
      throw error
    }
  }

  async #answer(
    { statusCode: status, headers, body }: Dispatcher.ResponseData,
    { key, release, signal }: Sent,
  ): Promise<Answer> {
    const encodings = key?.encodings ?? []
    const close = () => {
      body.destroy()
      release()
    }
    // A reader hears an error by itself; an answer that nobody reads may fail unheard.
    body.on('error', () => {})
    try {
      const { isFramed } = checkHead(status, headers)
      const passed = passedHeaders(headers)
      throwOnLeak(JSON.stringify(passed), encodings)
      this.#settle(status)
      const scrubber = new Scrubber(encodings)
      const pieces = status < 400 ? readWhole(body, scrubber) : readFailure(body, scrubber)
      return { status, headers: passed, isFramed, body: this.#told(pieces, signal), close }
    } catch (error) {
      body.destroy()
      throw error
    }
  }

  #settle(status: number): void {
    this.#lastStatus = status
    this.#lastError = null
    this.#breaker.succeeded()
  }

  /** Passes pieces on. Errors become `AirlockError`s, and are logged and remembered. */
  async *#told(pieces: AsyncIterable<Buffer>, signal: AbortSignal): AsyncGenerator<Buffer> {
    try {
      yield* pieces
    } catch (error) {
      if (signal.aborted) throw error
      const failure = this.#asError(error)
      this.#note(failure, error)
      throw failure
    }
  }

  #failure(error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) {
      this.#breaker.abandoned()
      return signal.reason
    }
    const failure = this.#asError(error)
    // One tenant may provoke anything that happens on a connection; it must not close the upstream for others.
    if (!(error instanceof NotConnected)) this.#breaker.succeeded()
    else if (this.#breaker.failed())
      this.#options.log.warn(`upstream ${this.#options.name} cannot be reached: ${error.reason}`)
    this.#note(failure, error)
    return failure
  }

  #note({ code, message }: AirlockError, cause: unknown): void {
    this.#lastError = code
    const { name: upstream, log } = this.#options
    if (code === 'upstream_leaked_key')
      return log.error('cut an answer that held our key: change the key, and see what base_url points to', { upstream })
    const reason = cause instanceof NotConnected ? cause.reason : codeOf(cause)
    log.info('a call upstream failed', { upstream, code, why: message, reason })
  }

  #asError(error: unknown): AirlockError {
    if (isAirlockError(error)) return error
    // The text of an error may quote the other side: its code is enough.
    if (error instanceof NotConnected) return new AirlockError('upstream_unavailable')
    const isLate = ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'].includes(codeOf(error))
    return new AirlockError(isLate ? 'upstream_timeout' : 'upstream_broken')
  }

  #readKey(): Key | undefined {
    const state = this.#keyState
    if (state === 'none') return undefined
    const key = state === 'present' ? this.#key?.get() : undefined
    if (key === undefined)
      throw new AirlockError('key_unavailable', `The key of upstream ${this.#options.name} is ${state}.`)
    return key
  }

  get #keyState(): UpstreamHealth['key'] {
    if (this.#key === undefined) return 'none'
    try {
      return this.#key.get() === undefined ? 'absent' : 'present'
    } catch {
      // The file does not hold one key on one line, or cannot be read.
      return 'malformed'
    }
  }
}
