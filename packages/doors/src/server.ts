import type { IncomingMessage } from 'node:http'
import { AirlockError, openDoorsRequest, sandboxId } from '@airlock/contract'
import type { Log } from '@airlock/std'
import { listenForHttp, type PrivateListener, readJson, refuse, sendJson } from '@airlock/wire'
import type { Doors } from './doors.ts'

interface ListenOptions {
  readonly doors: Doors
  readonly socket: string
  readonly socketUid: number | null
  readonly log: Log
}

const MAX_BODY = 4096
/** The control plane alone comes. */
const MAX_CONNECTIONS = 256
const REQUEST_MS = 30_000

/** Serves the control plane on a socket that nobody else can open: the first table of `contract/doors-api.ts`. */
export async function listen({ doors, socket, socketUid, log }: ListenOptions): Promise<PrivateListener> {
  return listenForHttp(
    { unix: socket, uid: socketUid },
    {
      maxConnections: MAX_CONNECTIONS,
      requestMs: REQUEST_MS,
      onRequest: (request, response) =>
        void answer(doors, request).then(
          (value) => sendJson(response, 200, value),
          (error: unknown) => refuse({ request, response }, error, log),
        ),
    },
  )
}

async function answer(doors: Doors, request: IncomingMessage): Promise<unknown> {
  const { method = '', url = '' } = request
  if (method === 'GET' && url === '/doors') return { sandboxes: doors.list() }
  const sandbox = sandboxId.safeParse(/^\/doors\/([^/?]+)$/.exec(url)?.[1])
  if (!sandbox.success || (method !== 'PUT' && method !== 'DELETE')) throw new AirlockError('route_not_found')
  if (method === 'DELETE') await doors.close(sandbox.data)
  else await doors.open(sandbox.data, (await readJson(request, openDoorsRequest, MAX_BODY)).doors)
  return {}
}
