import { AirlockError } from '@airlock/contract'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { readBounded } from '@airlock/wire'
import { BodyMemory, type Memory, NO_MEMORY } from './body-memory.ts'
import { connectionBounds, OpenConnections } from './open-connections.ts'
import { orGone, throwIfGone } from './or-gone.ts'
import { holdBack, type RequestRateBounds, RequestRates } from './request-rates.ts'
import { type Bound, type Holder, Shares } from './shares.ts'
import { type Lane, Turns } from './turns.ts'

interface AdmissionOptions {
  readonly rates: RequestRateBounds
  readonly trustedProxy: boolean
}

/** Delay of a refusal for too many requests under way. */
const REFUSAL_S = 1

/** Memory for request bodies, over all connections. */
const BODY_BYTES = 128 * 1024 * 1024

/**
 * Admits connections, requests and bodies. Callers and tenants have a share of each, so a flood slows its maker. Requests that
 * only take power away (lane `reduces`) are heard beyond every share, and hold nothing then.
 */
export class Admission {
  readonly #connections: OpenConnections
  readonly #requests: Shares
  readonly #bodies = new BodyMemory(BODY_BYTES)
  readonly #rates: RequestRates
  readonly #turns = new Turns()

  constructor({ rates, trustedProxy }: AdmissionOptions) {
    const bounds = connectionBounds()
    this.#connections = new OpenConnections({
      bounds,
      isProxied: trustedProxy,
      onAccept: () => this.#turns.accepted(),
    })
    this.#rates = new RequestRates(rates)
    // Half of the connections: the other half is idle, and can be closed for newcomers.
    this.#requests = new Shares(bounds.proven / 2)
  }

  watch(server: Server): Server {
    return this.#connections.watch(server)
  }

  inTurn(listener: RequestListener): RequestListener {
    return this.#connections.inTurn(listener)
  }

  /** Sets the address of a connection as the trusted proxy forwards it. */
  locate({ socket }: IncomingMessage, address: string): void {
    this.#connections.locate(socket, address)
  }

  /** Counts the connection as that caller's. Throws when the share of the caller is used up, unless the request reduces. */
  connect({ socket }: IncomingMessage, holder: Holder, lane: Lane): Connected {
    const refusal = this.#connections.prove(socket, holder)
    if (refusal && lane !== 'reduces') throw refusal
    return refusal ? 'beyond' : 'within'
  }

  /** Waits for the turn of this request. Throws when its caller or tenant has too many requests under way. */
  async enter(exchange: HttpExchange, entry: Entry): Promise<AdmittedRequest> {
    const { response } = exchange
    const { holder, lane } = entry
    if (lane !== 'reduces') await this.#rates.pass(holder, response)
    // A response that is closed already never gives its share back.
    throwIfGone(response)
    const bound = this.#requests.take(holder)
    if (bound && lane !== 'reduces') {
      // An immediate refusal would cost the caller nothing, and the event loop a request.
      await holdBack(REFUSAL_S, response)
      throw tooManyUnderWay(bound)
    }
    if (!bound) response.once('close', () => this.#requests.give(holder))
    const isBeyond = bound !== undefined || entry.connected === 'beyond'
    const context = { exchange, entry, isBeyond, rates: this.#rates, bodies: this.#bodies, turns: this.#turns }
    const admitted = new AdmittedRequest(context)
    await admitted.begin()
    return admitted
  }
}

export interface HttpExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** A connection `beyond` the share of its caller closes after one answer. */
type Connected = 'within' | 'beyond'

interface Entry {
  readonly holder: Holder
  readonly lane: Lane
  readonly connected: Connected
}

interface AdmittedContext {
  readonly exchange: HttpExchange
  readonly entry: Entry
  readonly isBeyond: boolean
  readonly rates: RequestRates
  readonly bodies: BodyMemory
  readonly turns: Turns
}

/** Deadline for the body of a request beyond the shares. */
const BEYOND_MS = 2_000

/** A request that was admitted. Its shares are given back when its response closes. */
export class AdmittedRequest {
  readonly #context: AdmittedContext

  constructor(context: AdmittedContext) {
    this.#context = context
  }

  /** A share was used up: the request holds nothing, and its connection closes after the answer. */
  get isBeyond(): boolean {
    return this.#context.isBeyond
  }

  /** Waits for a turn of the event loop. */
  async begin(): Promise<void> {
    const { entry, exchange } = this.#context
    const { turn, leave } = this.#takeTurn(entry.lane)
    await orGone(turn, exchange.response).finally(leave)
  }

  /** Waits for the rate and the turn of another route that this request calls, also after its caller hung up. */
  async beginAnother(lane: Lane): Promise<void> {
    const { rates, entry } = this.#context
    if (lane !== 'reduces') await rates.pass(entry.holder)
    await this.#takeTurn(lane).turn
  }

  #takeTurn(lane: Lane): { readonly turn: Promise<void>; readonly leave: () => void } {
    const { turns, entry } = this.#context
    const { promise, resolve } = Promise.withResolvers<void>()
    return { turn: promise, leave: turns.take(lane, [entry.holder.tenant, entry.holder.actor], resolve) }
  }

  /** Reads the whole body, once there is memory for it, and waits for another turn. Reads at most `maxBytes`. */
  async read(maxBytes: number): Promise<Buffer> {
    const { request } = this.#context.exchange
    const memory = await this.reserve(maxBytes)
    const bytes = await readBounded(request, { maxBytes, ...(this.isBeyond ? { ms: BEYOND_MS } : {}) })
    memory.shrinkTo(bytes.length)
    await this.begin()
    return bytes
  }

  /** Waits for memory for at most `maxBytes` of the body. It is held until the response closes. */
  async reserve(maxBytes: number): Promise<Memory> {
    const { entry, bodies, exchange } = this.#context
    // Bodies of requests that reduce are small, and wait for nothing.
    if (entry.lane === 'reduces') return NO_MEMORY
    const bytes = Math.min(maxBytes, lengthOf(exchange.request) ?? maxBytes)
    await bodies.take(entry.holder, bytes, exchange.response)
    let held = bytes
    const shrinkTo = (left: number): void => {
      // The response may have closed first, and given all back.
      if (left >= held) return
      bodies.give(entry.holder, held - left)
      held = left
    }
    if (exchange.response.destroyed) shrinkTo(0)
    else exchange.response.once('close', () => shrinkTo(0))
    return { shrinkTo }
  }
}

function lengthOf({ headers }: IncomingMessage): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}

function tooManyUnderWay(bound: Bound): AirlockError {
  const whose = bound === 'caller' ? 'You have' : 'The keys of this tenant together have'
  return new AirlockError('too_many_requests', `${whose} too many requests under way.`, {
    hint: 'Wait until some are answered.',
    retryAfterS: REFUSAL_S,
  })
}
