import { AirlockError, FOLLOW_PROTOCOL, type FollowedCall } from '@airlock/contract'
import { endSoon, type Log } from '@airlock/std'
import { type FollowServerOptions, listenForHttp, refuse, serveFollowed } from '@airlock/wire'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { NodeImageDesk } from '../sandboxes/node-images.ts'
import type { Sandboxes } from '../sandboxes/sandboxes.ts'
import { send } from './http.ts'
import { createArtifactRoutes } from './artifact-routes.ts'
import { createImageRoutes } from './image-routes.ts'
import { createRoutes, type Handler, type Health } from './routes.ts'
import { startFollowed } from './start-followed.ts'

interface ListenOptions {
  readonly sandboxes: Sandboxes
  readonly images: NodeImageDesk
  readonly health: Health
  readonly socket: string
  readonly socketUid: number | null
  readonly log: Log
}

/** The control plane alone comes: one for each command, transfer and stream that is under way. */
const MAX_CONNECTIONS = 16_384

/** Serves the control plane on a socket that nobody else can open. Returns how to stop; sandboxes go on running. */
export async function listen(options: ListenOptions): Promise<() => Promise<void>> {
  const routes = new Map([
    ...createRoutes(options.sandboxes, options.health),
    ...createImageRoutes(options.images),
    ...createArtifactRoutes(options.sandboxes),
  ])
  const start = async (call: FollowedCall) => startFollowed(options.sandboxes, call)
  const listener = await listenForHttp(
    { unix: options.socket, uid: options.socketUid },
    {
      maxConnections: MAX_CONNECTIONS,
      requestMs: 0,
      onRequest: (request, response) =>
        void answer(routes, request, response).catch((error: unknown) => {
          // Nobody listens any more to what went wrong, and that is most likely why it did.
          if (!response.destroyed) refuse({ request, response }, error, options.log)
        }),
      onUpgrade: (request, socket) => upgrade(request, socket, { log: options.log, start }),
    },
  )
  return async () => {
    listener.close()
    await options.sandboxes.close()
  }
}

function upgrade(request: IncomingMessage, socket: Duplex, options: FollowServerOptions): void {
  if (request.headers.upgrade !== FOLLOW_PROTOCOL) return endSoon(socket, 'HTTP/1.1 400 Bad Request\r\n\r\n')
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${FOLLOW_PROTOCOL}\r\n\r\n`)
  serveFollowed(socket, options)
}

async function answer(
  routes: ReadonlyMap<string, Handler>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://data-plane')
  const hungUp = new AbortController()
  response.on('close', () => {
    if (!response.writableFinished) hungUp.abort(new AirlockError('timeout', 'The caller hung up.'))
  })
  const { handler, params } = find(routes, request.method ?? 'GET', url.pathname)
  await send(response, await handler({ request, params, query: url.searchParams, signal: hungUp.signal }))
}

function find(
  routes: ReadonlyMap<string, Handler>,
  method: string,
  path: string,
): { handler: Handler; params: Record<string, string> } {
  const given = path.split('/')
  for (const [route, handler] of routes) {
    const [routeMethod = '', pattern = ''] = route.split(' ')
    const params = routeMethod === method ? match(pattern.split('/'), given) : undefined
    if (params) return { handler, params }
  }
  throw new AirlockError('route_not_found')
}

function match(pattern: readonly string[], given: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of pattern.entries()) {
    const value = decodeURIComponent(given[index] ?? '')
    if (part.startsWith(':')) params[part.slice(1)] = value
    else if (part !== value) return undefined
  }
  return params
}
