import { chmod, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AirlockError, toAirlockError } from '@airlock/contract'
import { endSoon, type Log, newId, type Rate, TokenBucket } from '@airlock/std'
import { readBounded, sendJson } from '@airlock/wire'
import type { ByteBudget } from './byte-budget.ts'
import { type Head, readHead } from './plain-head.ts'
import { refuse, refuseMalformed } from './refuse.ts'
import { Seats } from './seats.ts'

/** What a door takes from programs inside, and how much of it. */
export interface DoorBounds {
  /** Connections at once. */
  readonly connections: number
  readonly requestsPerConnection: number
  /** Until a head, and a request with its body, have arrived. */
  readonly headMs: number
  readonly requestMs: number
  /** Until a connection without a request is closed: one that had an answer, and one that had none. */
  readonly idleMs: number
  readonly silentMs: number
  readonly rate: Rate
}

/** What a route is given: a request that means the same to every reader. */
export interface DoorRequest {
  /** Names the request where it is refused, and in evidence. */
  readonly requestId: string
  readonly token: string | null
  readonly body: Buffer
  /** The request target, as it stands in the request line. */
  readonly target: string
  readonly headers: IncomingMessage['headers']
  /** Aborts when the connection is gone. */
  readonly signal: AbortSignal
  /** Gives the bytes of the body back to `bodies`. Happens by itself when the request is answered. */
  readonly release: () => void
}

export interface Route {
  /** Longest body; 0 takes none. */
  readonly maxBodyBytes: number
  /** Beside the rate of the door. */
  readonly rate?: Rate
  /** Requests under way at once. */
  readonly atOnce?: number
  /** Answers the request, or throws why not. It may take as long as it likes: the connection is not cut for silence meanwhile. */
  readonly answer: (request: DoorRequest, response: ServerResponse) => Promise<void>
}

export interface HttpDoorOptions {
  /** Of the socket. */
  readonly path: string
  /** What clients may call the door. Nothing depends on it; a request that names another host is not for us. */
  readonly hosts: ReadonlySet<string>
  /** The whole list. */
  readonly routes: Readonly<Record<string, Route>>
  /** The name of a request in `routes`: `METHOD /path` by default. */
  readonly nameOf?: (request: IncomingMessage) => string | undefined
  /** Answers an error and ends the connection, in the shape that clients of this door read. */
  readonly refuse?: Refuse
  /** Bound on the bytes of bodies under way. */
  readonly bodies?: ByteBudget
  readonly bounds: DoorBounds
  readonly log: Log
}

export type Refuse = (exchange: Exchange, error: AirlockError, requestId: string) => void

/** A route that answers JSON. */
export function json(answer: (request: DoorRequest) => Promise<unknown>): Route['answer'] {
  return async (request, response) => {
    const value = await answer(request)
    if (!response.destroyed) sendJson(response, 200, value)
  }
}

/** Lets every program in, whatever its uid: who sees the socket is decided by where its directory is mounted. */
export async function openHttpDoor(options: HttpDoorOptions): Promise<HttpDoor> {
  const door = new HttpDoor(options)
  await door.bind()
  return door
}

export type DoorResponse = ServerResponse

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** A route with what it counts. */
interface OpenRoute extends Route {
  readonly bucket: TokenBucket | undefined
  underWay: number
}

/**
 * HTTP/1.1 from hostile programs. It fails closed: what is not exactly one plain request of the list is refused, and nothing
 * that follows a refusal on its connection is read. When all connections are taken, the one that is idle for the longest time
 * makes room.
 */
export class HttpDoor {
  readonly #options: HttpDoorOptions
  readonly #server: Server
  readonly #seats: Seats
  readonly #bucket: TokenBucket
  readonly #routes: ReadonlyMap<string, OpenRoute>
  /** What follows a request that was refused may be its body, meant to be read as something else. */
  readonly #refused = new WeakSet<Duplex>()

  constructor(options: HttpDoorOptions) {
    const { bounds, routes } = options
    this.#options = options
    this.#seats = new Seats({ most: bounds.connections, silentMs: bounds.silentMs })
    this.#bucket = new TokenBucket(bounds.rate)
    this.#routes = new Map(Object.entries(routes).map(([line, route]) => [line, opened(route)]))
    this.#server = createServer(parserOf(bounds), (request, response) => this.#meet({ request, response }))
    this.#server.maxRequestsPerSocket = bounds.requestsPerConnection
    this.#server.setTimeout(bounds.silentMs)
    this.#server.on('connection', (socket) => this.#seats.take(socket))
    for (const expectation of ['checkExpectation', 'checkContinue'] as const)
      this.#server.on(expectation, (request: IncomingMessage, response: ServerResponse) => {
        const error = new AirlockError('invalid_request', 'The door answers no expectation.')
        this.#refuse({ request, response }, error)
      })
    this.#server.on('clientError', (_error, socket) => {
      if (this.#refused.has(socket) || !socket.writable) endSoon(socket)
      else refuseMalformed(socket)
    })
  }

  /** Takes the place of a socket that an earlier process left. */
  async bind(): Promise<void> {
    const { path } = this.#options
    await rm(path, { force: true })
    await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(path, resolve))
    await chmod(path, 0o666)
  }

  /** Cuts every connection; newcomers are let in. */
  cut(): void {
    this.#server.closeAllConnections()
  }

  /** Node removes the socket with the server. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.cut()
    await closed
  }

  #meet(exchange: Exchange): void {
    if (this.#refused.has(exchange.request.socket)) return
    try {
      const { route, head } = this.#admit(exchange.request)
      void this.#serve(route, head, exchange).catch((error: unknown) =>
        this.#options.log.error('could not answer a request at a door', { path: this.#options.path, error }),
      )
    } catch (thrown) {
      this.#refuse(exchange, toAirlockError(thrown))
    }
  }

  /** At once, before the next request of the connection is read. */
  #admit(request: IncomingMessage): { readonly route: OpenRoute; readonly head: Head } {
    throwOnWait(this.#bucket.take())
    const { nameOf = plainName } = this.#options
    const route = this.#routes.get(nameOf(request) ?? '')
    if (!route) throw new AirlockError('route_not_found')
    const head = readHead(request, { hosts: this.#options.hosts, maxBodyBytes: route.maxBodyBytes })
    if (route.underWay >= (route.atOnce ?? Infinity)) throw new AirlockError('too_many_requests')
    if (route.bucket) throwOnWait(route.bucket.take())
    return { route, head }
  }

  // oxlint-disable-next-line max-params -- a route, what it is asked, and where the answer goes
  async #serve(route: OpenRoute, { token }: Head, exchange: Exchange): Promise<void> {
    const { request, response } = exchange
    const { url: target = '', headers } = request
    const requestId = newId('req')
    const held = this.#options.bodies?.open()
    const release = () => held?.release()
    route.underWay += 1
    try {
      const body = await readBounded(request, { maxBytes: route.maxBodyBytes, ...(held && { onBytes: held.take }) })
      await this.#seats.during(request.socket, async (signal) =>
        route.answer({ requestId, token, body, target, headers, signal, release }, response),
      )
    } catch (thrown) {
      this.#refuse(exchange, toAirlockError(thrown), requestId)
    } finally {
      release()
      route.underWay -= 1
    }
  }

  /** Programs that were refused start anew, on another connection. */
  #refuse(exchange: Exchange, error: AirlockError, requestId = newId('req')): void {
    this.#refused.add(exchange.request.socket)
    const { refuse: shaped } = this.#options
    if (shaped) shaped(exchange, error, requestId)
    else refuse(exchange.response, error, requestId)
  }
}

function parserOf({ headMs, requestMs, idleMs }: DoorBounds) {
  return {
    maxHeaderSize: 12 * 1024,
    headersTimeout: headMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: 500,
    insecureHTTPParser: false,
    requireHostHeader: true,
  } as const
}

function plainName({ method, url }: IncomingMessage): string {
  return `${method} ${url}`
}

function opened(route: Route): OpenRoute {
  return { ...route, bucket: route.rate && new TokenBucket(route.rate), underWay: 0 }
}

function throwOnWait(seconds: number): void {
  if (seconds > 0) throw new AirlockError('too_many_requests')
}
