import { chmodSync, chownSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { AirlockError, openDoorsRequest, sandboxId, toAirlockError } from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { Doors } from './doors.ts'
import { readJson, sendJson } from './http.ts'

interface ListenOptions {
  readonly doors: Doors
  readonly socket: string
  readonly socketUid: number | null
  readonly log: Log
}

const MAX_BODY = 4096
/** The control plane alone comes. */
const MAX_CONNECTIONS = 256

/** Serves the control plane on a socket that nobody else can open: the first table of `contract/doors-api.ts`. */
export async function listen({ doors, socket, socketUid, log }: ListenOptions): Promise<() => void> {
  const server = createServer({ headersTimeout: 5_000, requestTimeout: 30_000 }, (request, response) => {
    answer(doors, request).then(
      (value) => sendJson(response, 200, value),
      (error: unknown) => refuse(response, error, log),
    )
  })
  server.maxConnections = MAX_CONNECTIONS
  rmSync(socket, { force: true })
  // Born closed to everybody, so there is no moment in which another could connect.
  const before = process.umask(0o177)
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(socket, resolve))
  } finally {
    process.umask(before)
  }
  chmodSync(socket, 0o600)
  if (socketUid !== null) chownSync(socket, socketUid, socketUid)
  return () => {
    server.close()
    server.closeAllConnections()
  }
}

async function answer(doors: Doors, request: IncomingMessage): Promise<unknown> {
  const { method = '', url = '' } = request
  if (method === 'GET' && url === '/doors') return { sandboxes: doors.sandboxes }
  const sandbox = sandboxId.safeParse(/^\/doors\/([^/?]+)$/.exec(url)?.[1])
  if (!sandbox.success || (method !== 'PUT' && method !== 'DELETE')) throw new AirlockError('route_not_found')
  if (method === 'DELETE') await doors.close(sandbox.data)
  else await doors.open(sandbox.data, openDoorsRequest.parse(await readJson(request, MAX_BODY)).doors)
  return {}
}

function refuse(response: ServerResponse, thrown: unknown, log: Log): void {
  const { code, message, status } = toAirlockError(thrown)
  if (code === 'internal') log.error('a call of the control plane failed', { error: thrown })
  if (!response.destroyed) sendJson(response, status, { error: { code, message } })
}
