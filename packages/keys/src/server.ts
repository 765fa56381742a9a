import type { IncomingMessage, ServerResponse } from 'node:http'
import { AirlockError, type KeysHealth } from '@airlock/contract'
import type { Log } from '@airlock/std'
import { listenForHttp, type PrivateListener, refuse, sendJson } from '@airlock/wire'
import type { Calls } from './calls.ts'
import type { Tools } from './tools/tools.ts'
import type { Upstream } from './upstream/upstream.ts'

interface ListenOptions {
  readonly calls: Calls
  readonly tools: Tools
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly socket: string
  readonly socketUid: number | null
  readonly log: Log
}

/** One connection of the doors for each call, and some that are idle. */
const MAX_CONNECTIONS = 8192
/** Bound on the arrival of a request: the doors have all of it before they send it. */
const REQUEST_MS = 60_000

/** Serves the doors on a socket that nobody else can open: the table of `contract/keys-api.ts`. */
export async function listen({
  calls,
  tools,
  upstreams,
  socket,
  socketUid,
  log,
}: ListenOptions): Promise<PrivateListener> {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url = '' } = request
    if (method === 'POST' && url === '/call') return calls.answer(request, response)
    if (method === 'POST' && url === '/tool') return tools.answer(request, response)
    if (method !== 'GET' || url !== '/health') throw new AirlockError('route_not_found')
    const health: KeysHealth = { upstreams: [...upstreams.values()].map((upstream) => upstream.health) }
    sendJson(response, 200, health)
  }
  return listenForHttp(
    { unix: socket, uid: socketUid },
    {
      maxConnections: MAX_CONNECTIONS,
      requestMs: REQUEST_MS,
      onRequest: (request, response) =>
        void answer(request, response).catch((error: unknown) => refuse({ request, response }, error, log)),
    },
  )
}
