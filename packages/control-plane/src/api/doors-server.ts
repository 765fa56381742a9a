import type { IncomingMessage } from 'node:http'
import { AirlockError, controlCall } from '@airlock/contract'
import type { Log } from '@airlock/std'
import { listenForHttp, type PrivateListener, readJson, refuse, sendJson } from '@airlock/wire'
import type { DoorControl } from '../doors/door-control.ts'

interface DoorsServerOptions {
  readonly control: DoorControl
  readonly path: string
  /** Who may open the socket besides us. */
  readonly uid: number
  readonly log: Log
}

const MAX_BODY = 16 * 1024
const MAX_CONNECTIONS = 256
const REQUEST_MS = 10_000

/**
 * Hears the doors process, on a socket that nobody else can open: which sandbox a request is from, it says, and only it.
 * Precondition: root, for the socket changes hands.
 */
export async function listenToDoors({ control, path, uid, log }: DoorsServerOptions): Promise<PrivateListener> {
  return listenForHttp(
    { unix: path, uid },
    {
      maxConnections: MAX_CONNECTIONS,
      requestMs: REQUEST_MS,
      onRequest: (request, response) =>
        void answer(control, request).then(
          (value) => sendJson(response, 200, value),
          (error: unknown) => refuse({ request, response }, error, log),
        ),
    },
  )
}

async function answer(control: DoorControl, request: IncomingMessage): Promise<unknown> {
  if (request.method !== 'POST' || request.url !== '/control') throw new AirlockError('route_not_found')
  return control.answer(await readJson(request, controlCall, MAX_BODY))
}
