import { AirlockError } from '@airlock/contract'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { readBounded } from '@airlock/wire'
import { BodyMemory, type Memory, NO_MEMORY } from './body-memory.ts'
import { connectionBounds, OpenConnections } from './open-connections.ts'
import { orGone } from './or-gone.ts'
import { type RequestRateBounds, RequestRates } from './request-rates.ts'
import { type Bound, type Holder, Shares } from './shares.ts'
import { Turns } from './turns.ts'

/** `reduces` for what only takes power away. */
export type Kind = 'reduces' | 'other'

export interface Exchanged {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

interface AdmissionOptions {
  readonly rates: RequestRateBounds
  readonly trustedProxy: boolean
}

/** Bytes of bodies at once, over all connections. */
const BODY_BYTES = 128 * 1024 * 1024

/**
 * Who gets in, and when: a connection, a request, a body. Each is a share of a whole, by caller and by tenant, so whoever
 * floods us waits for itself. What only takes power away is heard beyond every share, and holds nothing then.
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
    // Half of the connections, so that there are idle ones that can be closed for others.
    this.#requests = new Shares(bounds.proven / 2)
  }

  watch(server: Server): Server {
    return this.#connections.watch(server)
  }

  inTurn(listener: RequestListener): RequestListener {
    return this.#connections.inTurn(listener)
  }

  /** A trusted proxy says where it comes from. */
  locate({ socket }: IncomingMessage, address: string): void {
    this.#connections.locate(socket, address)
  }

  /** Counts the connection as that caller's. Throws when its share is used up, unless it takes power away. */
  connect({ socket }: IncomingMessage, holder: Holder, kind: Kind): Connected {
    const refusal = this.#connections.prove(socket, holder)
    if (refusal && kind !== 'reduces') throw refusal
    return refusal ? 'beyond' : 'within'
  }

  /** Waits until it is the turn of this request. Throws when the caller, or its tenant, has too much under way. */
  async enter(exchange: Exchanged, asked: Asked): Promise<Place> {
    const { response } = exchange
    const { holder, kind } = asked
    if (kind !== 'reduces') await this.#rates.pass(holder, response)
    const bound = this.#requests.take(holder)
    if (bound && kind !== 'reduces') throw tooManyUnderWay(bound)
    if (!bound) response.once('close', () => this.#requests.give(holder))
    const isBeyond = bound !== undefined || asked.connected === 'beyond'
    const place = new Place({ exchange, asked, isBeyond, rates: this.#rates, bodies: this.#bodies, turns: this.#turns })
    await place.begin()
    return place
  }
}

/** `beyond` the share of its caller a connection closes after one answer. */
export type Connected = 'within' | 'beyond'

interface Asked {
  readonly holder: Holder
  readonly kind: Kind
  readonly connected: Connected
}

interface PlaceParts {
  readonly exchange: Exchanged
  readonly asked: Asked
  readonly isBeyond: boolean
  readonly rates: RequestRates
  readonly bodies: BodyMemory
  readonly turns: Turns
}

/** When a body that is heard beyond the shares has to be here. */
const BEYOND_MS = 2_000

/** The place of one request among those under way, until it is answered. */
export class Place {
  readonly #parts: PlaceParts

  constructor(parts: PlaceParts) {
    this.#parts = parts
  }

  /** It is heard although a share is used up: nothing is kept for it, its connection closes after the answer. */
  get isBeyond(): boolean {
    return this.#parts.isBeyond
  }

  /** One request of all begins at a time. */
  async begin(): Promise<void> {
    const { asked, exchange } = this.#parts
    const { turn, leave } = this.#takeTurn(asked.kind)
    await orGone(turn, exchange.response).finally(leave)
  }

  /** The same for another route that this request asks for, perhaps to clean up after a caller that hung up. */
  async beginAnother(kind: Kind): Promise<void> {
    const { rates, asked } = this.#parts
    if (kind !== 'reduces') await rates.pass(asked.holder)
    await this.#takeTurn(kind).turn
  }

  #takeTurn(kind: Kind): { readonly turn: Promise<void>; readonly leave: () => void } {
    const { turns, asked } = this.#parts
    const { promise, resolve } = Promise.withResolvers<void>()
    return { turn: promise, leave: turns.take(kind, [asked.holder.tenant, asked.holder.actor], resolve) }
  }

  /** The body whole, once there is memory for it, and then in its turn. Reads at most `maxBytes`. */
  async read(maxBytes: number): Promise<Buffer> {
    const { request } = this.#parts.exchange
    const memory = await this.reserve(maxBytes)
    const bytes = await readBounded(request, { maxBytes, ...(this.isBeyond ? { ms: BEYOND_MS } : {}) })
    memory.shrinkTo(bytes.length)
    await this.begin()
    return bytes
  }

  /** Waits for memory for the body, up to that many bytes of it. It is held until the request is answered. */
  async reserve(maxBytes: number): Promise<Memory> {
    const { asked, bodies, exchange } = this.#parts
    // What takes power away waits for nobody, and is small.
    if (asked.kind === 'reduces') return NO_MEMORY
    const bytes = Math.min(maxBytes, lengthOf(exchange.request) ?? maxBytes)
    await bodies.take(asked.holder, bytes, exchange.response)
    let held = bytes
    const shrinkTo = (left: number): void => {
      bodies.give(asked.holder, held - left)
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
    retryAfterS: 1,
  })
}
