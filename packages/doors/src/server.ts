import type { IncomingMessage } from 'node:http'
import { AirlockError, openDoorsRequest, sandboxId } from '@airlock/contract'
import type { Log } from '@airlock/std'
import { listenForHttp, type PrivateListener, readJson, refuse, sendJson } from '@airlock/wire'
import type { Doors } from './doors.ts'
import type { KeysClient } from './keys/keys-client.ts'
import type { ControlPlaneLink } from './link/control-plane-link.ts'

interface ListenOptions {
  readonly doors: Doors
  readonly link: Pick<ControlPlaneLink, 'ready'>
  /** Null where no upstream is configured. */
  readonly keys: Pick<KeysClient, 'health'> | null
  readonly socket: string
  readonly socketUid: number | null
  readonly log: Log
}

/** The models of a sandbox, each with its aliases. */
const MAX_BODY = 16 * 1024 * 1024
/** The control plane alone comes. */
const MAX_CONNECTIONS = 256
const REQUEST_MS = 30_000
/** Less than the control plane waits for an answer. */
const READY_MS = 1_000

/** Serves the control plane on a socket that nobody else can open: the first table of `contract/src/host/doors-api.ts`. */
export async function listen({ doors, link, keys, socket, socketUid, log }: ListenOptions): Promise<PrivateListener> {
  return listenForHttp(
    { unix: socket, uid: socketUid },
    {
      maxConnections: MAX_CONNECTIONS,
      requestMs: REQUEST_MS,
      onRequest: (request, response) =>
        void answer({ doors, link, keys }, request).then(
          (value) => sendJson(response, 200, value),
          (error: unknown) => refuse({ request, response }, error, log),
        ),
    },
  )
}

async function answer(
  { doors, link, keys }: Pick<ListenOptions, 'doors' | 'link' | 'keys'>,
  request: IncomingMessage,
): Promise<unknown> {
  const { method = '', url = '' } = request
  if (method === 'GET' && url === '/doors') return { sandboxes: doors.list() }
  if (method === 'GET' && url === '/upstreams') return keys === null ? { upstreams: [] } : keys.health()
  return changeDoors({ doors, link }, request)
}

async function changeDoors(
  { doors, link }: Pick<ListenOptions, 'doors' | 'link'>,
  request: IncomingMessage,
): Promise<unknown> {
  const { method = '', url = '' } = request
  const sandbox = sandboxId.safeParse(/^\/doors\/([^/?]+)$/.exec(url)?.[1])
  if (!sandbox.success || (method !== 'PUT' && method !== 'DELETE')) throw new AirlockError('route_not_found')
  if (method === 'DELETE') await doors.close(sandbox.data)
  else {
    await doors.open(sandbox.data, (await readJson(request, openDoorsRequest, MAX_BODY)).doors)
    // A door that is open is one at which questions are answered: whoever asks for it is there to do that.
    await link.ready(READY_MS)
  }
  return {}
}
