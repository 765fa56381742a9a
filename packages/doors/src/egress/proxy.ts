import { chmod, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AirlockError, toAirlockError } from '@airlock/contract'
import { endSoon, type Log, newId } from '@airlock/std'
import { refuseMalformed } from '../listener/refuse.ts'
import { holdEarly } from './flow/early-bytes.ts'
import { passTlsStart, tunnel } from './flow/tunnel.ts'
import type { Flow } from './flow/flow.ts'
import { forwardPlain } from './http/forward-plain.ts'
import { readPlainRequest } from './http/plain-request.ts'
import { readConnect } from './http/read-connect.ts'
import { refuseConnect, refusePlain, refuseTls } from './http/refusal.ts'
import type { Passage, Passages } from './passages.ts'

/** Sockets of one sandbox, with and without a request; more are closed at once. */
const MAX_SOCKETS = 512
const HEAD_MS = 5_000
const IDLE_MS = 10_000
const HELLO_MS = 5_000
const REQUESTS_PER_SOCKET = 1000

interface ProxyOptions {
  /** Of the socket. */
  readonly path: string
  readonly passages: Pick<Passages, 'through'>
  readonly log: Log
}

/** Takes the place of a socket that an earlier process left, and lets every program in. */
export async function openProxy(options: ProxyOptions): Promise<Proxy> {
  const proxy = new Proxy(options)
  await proxy.bind()
  return proxy
}

/** HTTP/1.1 from hostile programs: CONNECT, and requests in plain HTTP to another host. Everything else is refused. */
class Proxy {
  readonly #options: ProxyOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** What follows a request that was refused may be its body, meant to be read as something else. */
  readonly #refused = new WeakSet<Duplex>()
  /** Requests of a socket without a whole answer. */
  readonly #unanswered = new WeakMap<Duplex, number>()

  constructor(options: ProxyOptions) {
    this.#options = options
    this.#server = createServer(PARSER, (request, response) => void this.#plain(request, response))
    this.#server.maxConnections = MAX_SOCKETS
    this.#server.maxRequestsPerSocket = REQUESTS_PER_SOCKET
    this.#server.on('connection', (socket) => this.#take(socket))
    this.#server.on('connect', (request, client, head) => void this.#connect(request, client, head))
    this.#server.on('checkContinue', (request, response) => void this.#plain(request, response))
    this.#server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      this.#refused.add(request.socket)
      const error = new AirlockError('invalid_request', 'The door answers no expectation but 100-continue.')
      refusePlain(response, error, newId('req'))
    })
    this.#server.on('clientError', (_error, socket) => {
      if (this.#refused.has(socket) || !socket.writable) endSoon(socket)
      else refuseMalformed(socket)
    })
  }

  async bind(): Promise<void> {
    const { path } = this.#options
    await rm(path, { force: true })
    await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(path, resolve))
    await chmod(path, 0o666)
  }

  /** Node neither closes nor counts sockets after CONNECT, so all of them are ours. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #unansweredOf(socket: Duplex): number {
    return this.#unanswered.get(socket) ?? 0
  }

  #take(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => this.#sockets.delete(socket))
  }

  async #connect(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const requestId = newId('req')
    let isPromised = false
    if (this.#refused.has(client)) return
    const early = holdEarly(client, head)
    try {
      // Node gives the socket away, and their answers would be lost or land in the tunnel.
      if (this.#unansweredOf(client) > 0)
        throw new AirlockError('invalid_request', 'CONNECT must not follow requests that are not answered yet.')
      const to = readConnect(request)
      const onFlow = (flow: Flow) => {
        early.onLeft(() => flow.cut('client gone'))
        endWith(client, flow)
      }
      await this.#options.passages.through({ to, traffic: 'tls', method: null, requestId, onFlow }, async (passage) => {
        isPromised = true
        client.write('HTTP/1.1 200 Connection established\r\n\r\n')
        early.giveBack()
        await this.#carry(client, passage, to.host.text)
      })
    } catch (thrown) {
      if (client.destroyed) return
      if (isPromised) refuseTls(client)
      else refuseConnect(client, toAirlockError(thrown), requestId)
    }
  }

  async #carry(client: Duplex, { flow, upstream, raw }: Passage, serverName: string): Promise<void> {
    const ends = { client, upstream }
    if (!raw) await passTlsStart(ends, { flow, serverName, helloMs: HELLO_MS })
    await tunnel(ends, flow)
  }

  async #plain(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#refused.has(request.socket)) return
    const requestId = newId('req')
    // An answer that nobody waits for fails when it is written.
    response.on('error', () => response.destroy())
    const { socket } = request
    this.#unanswered.set(socket, this.#unansweredOf(socket) + 1)
    response.once('close', () => this.#unanswered.set(socket, this.#unansweredOf(socket) - 1))
    try {
      const plain = readPlainRequest(request)
      const { to, method } = plain
      const onFlow = (flow: Flow) => {
        endWith(response, flow)
        // After a CONNECT on the same socket the response itself does not hear of its end.
        socket.once('close', () => flow.cut('client gone'))
      }
      await this.#options.passages.through(
        { to, traffic: 'http', method, requestId, onFlow },
        async ({ flow, upstream }) => forwardPlain({ plain, request, response }, { flow, upstream }),
      )
    } catch (thrown) {
      this.#refused.add(socket)
      response.once('finish', () => endSoon(socket))
      refusePlain(response, toAirlockError(thrown), requestId)
    }
  }
}

const PARSER = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: HEAD_MS,
  // Of a whole request: a large upload is bounded by its flow.
  requestTimeout: 0,
  keepAliveTimeout: IDLE_MS,
  connectionsCheckingInterval: 500,
  insecureHTTPParser: false,
  // Node refuses such a request and reads on; we look at it ourselves.
  requireHostHeader: false,
} as const

/** Each ends with the other. */
function endWith(client: Duplex | ServerResponse, flow: Flow): void {
  client.once('close', () => flow.cut('client gone'))
  flow.signal.addEventListener('abort', () => client.destroy(), { once: true })
}
