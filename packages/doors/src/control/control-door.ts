import { chmod, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { AirlockError, type ControlCall, DOOR_SOCKETS, toAirlockError } from '@airlock/contract'
import { endSoon, type Log, newId, TokenBucket } from '@airlock/std'
import { sendJson } from '@airlock/wire'
import type { ControlPlaneClient } from '../control-plane-client.ts'
import type { OpenDoor } from '../doors.ts'

interface ControlDoorOptions {
  readonly controlPlane: Pick<ControlPlaneClient, 'ask'>
  readonly log: Log
}

/** The whole list: what is not in it is not there. None of them takes a body. */
const ROUTES: ReadonlyMap<string, ControlCall['ask']> = new Map([
  ['GET /v1/self', 'self'],
  ['POST /v1/self/heartbeat', 'heartbeat'],
  ['POST /v1/self/token', 'renew'],
])

/** Every bound of a connection from inside. */
const LIMITS = {
  maxHeaderSize: 12 * 1024,
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 500,
  insecureHTTPParser: false,
  requireHostHeader: true,
} as const
const MAX_CONNECTIONS = 16
const REQUESTS_A_CONNECTION = 100
const SILENT_MS = 10_000
const RATE = { burst: 20, perSecond: 10 }
/** Each renewal is a record: no sandbox may fill the evidence with them. */
const RENEWAL_RATE = { burst: 10, perSecond: 0.1 }

/** What a client of this door may call it. Nothing depends on it; a request that names somebody else is not for us. */
const HOSTS: ReadonlySet<string> = new Set(['airlock', 'localhost'])

/** Headers by which a request could mean two things to two readers. */
const REFUSED: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'upgrade',
  'expect',
  'te',
  'trailer',
  'proxy-authorization',
  'proxy-connection',
])
const ONCE = ['host', 'authorization', 'content-length']

/**
 * The door by which a program inside asks who it is, says that it lives, and renews its token. Which socket it came by is
 * who it is; the token has to agree, and that is for the control plane to say. Nothing that came in is passed on but the
 * token: what is asked there is written anew.
 */
export function controlDoor({ controlPlane, log }: ControlDoorOptions): OpenDoor {
  return async ({ sandbox, dir }) => {
    const path = join(dir, DOOR_SOCKETS.control)
    const rates = { all: new TokenBucket(RATE), renew: new TokenBucket(RENEWAL_RATE) }
    const refused = new WeakSet<Duplex>()
    const server = createServer(LIMITS, (request, response) => {
      const call = refused.has(request.socket) ? undefined : admit(request, response, rates)
      // What follows a request that was refused may be its body, meant to be read as something else.
      if (!call) return void refused.add(request.socket)
      void serve(response, async () => controlPlane.ask({ sandbox, ...call })).catch((error: unknown) =>
        log.error('a request at a door failed', { sandbox, error }),
      )
    })
    server.maxConnections = MAX_CONNECTIONS
    server.maxRequestsPerSocket = REQUESTS_A_CONNECTION
    server.setTimeout(SILENT_MS)
    const refuseExpectation = (request: IncomingMessage, response: ServerResponse) => {
      refused.add(request.socket)
      refuse(response, NOT_HERE)
    }
    server.on('checkExpectation', refuseExpectation).on('checkContinue', refuseExpectation)
    server.on('clientError', (_error, socket) => {
      if (refused.has(socket) || !socket.writable) endSoon(socket)
      else refuseMalformed(socket)
    })
    await bind(server, path)
    // It has no settings, so nothing changes with them.
    return { configure: () => {}, close: async () => close(server) }
  }
}

const NOT_HERE = new AirlockError('invalid_request', 'The door takes no body.')

type Asked = Pick<ControlCall, 'ask' | 'token'>
type Rates = Readonly<Record<'all' | 'renew', TokenBucket>>

/** At once, before the next request of the connection is read. Undefined when it was refused. */
function admit(request: IncomingMessage, response: ServerResponse, rates: Rates): Asked | undefined {
  try {
    throwOnWait(rates.all.take())
    const asked = parse(request)
    if (asked.ask === 'renew') throwOnWait(rates.renew.take())
    return asked
  } catch (thrown) {
    refuse(response, toAirlockError(thrown))
    return undefined
  }
}

function throwOnWait(seconds: number): void {
  if (seconds > 0) throw new AirlockError('too_many_requests')
}

async function serve(response: ServerResponse, ask: () => Promise<unknown>): Promise<void> {
  try {
    const answer = await ask()
    if (!response.destroyed) sendJson(response, 200, answer)
  } catch (thrown) {
    refuse(response, toAirlockError(thrown))
  }
}

/** Fails closed: anything that is not exactly a request of the list is none. */
function parse(request: IncomingMessage): Asked {
  const { headers, method = '', url = '' } = request
  const ask = ROUTES.get(`${method} ${url}`)
  if (ask === undefined) throw new AirlockError('route_not_found')
  if (!isPlain(request)) throw new AirlockError('invalid_request', 'The request is not one for this door.')
  if ((headers['content-length'] ?? '0') !== '0') throw NOT_HERE
  return { ask, token: /^Bearer (\S{1,8192})$/.exec(headers.authorization ?? '')?.[1] ?? null }
}

/** Whether every reader would read the same in it. */
function isPlain({ rawHeaders, headers, httpVersion }: IncomingMessage): boolean {
  const names = rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  const isRepeated = ONCE.some((name) => names.filter((other) => other === name).length > 1)
  const isOdd = names.some((name) => REFUSED.has(name))
  return httpVersion === '1.1' && !isRepeated && !isOdd && HOSTS.has(headers.host ?? '')
}

/** Whoever was refused starts anew, on another connection. */
function refuse(response: ServerResponse, error: AirlockError): void {
  if (response.destroyed || response.headersSent) return
  response.setHeader('connection', 'close')
  sendJson(response, error.status, textOf(error))
}

function refuseMalformed(socket: Duplex): void {
  const text = JSON.stringify(textOf(new AirlockError('invalid_request', 'The request is not valid HTTP.')))
  endSoon(
    socket,
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  )
}

function textOf({ code, message, hint, retryable }: AirlockError): object {
  return { error: { code, message, hint, retryable, requestId: newId('req') } }
}

/** Anybody inside may come to it: who can see it is decided by where its directory is mounted. */
async function bind(server: Server, path: string): Promise<void> {
  await rm(path, { force: true })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))
  await chmod(path, 0o666)
}

/** Node removes the socket with the server. */
async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeAllConnections()
  await closed
}
