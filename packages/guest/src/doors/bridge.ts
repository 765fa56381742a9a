import { connect, createServer, type Server, type Socket } from 'node:net'
import type { GuestBridge } from '@airlock/contract/guest'

const MAX_CONNECTIONS = 512
/** Whoever asked reads the answer within this time. */
const REFUSAL_MS = 5_000

/**
 * Joins the port to the door, bytes as they are, for clients that cannot dial a unix socket. Identity is the socket, not this
 * bridge. The port is bound before user code runs. A door that is away is an error at once, never a hang.
 */
export async function openBridge({ port, socket }: GuestBridge): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => join(client, socket))
  server.maxConnections = MAX_CONNECTIONS
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return server
}

function join(client: Socket, path: string): void {
  const door = connect({ path, allowHalfOpen: true })
  let isJoined = false
  door.once('connect', () => {
    isJoined = true
    client.pipe(door).pipe(client)
  })
  // 'close' follows both errors, and says all there is to say.
  client.on('error', () => {})
  door.on('error', () => {})
  client.on('close', () => door.destroy())
  door.on('close', () => {
    if (isJoined) client.destroy()
    else refuse(client)
  })
}

const BODY = JSON.stringify({
  type: 'error',
  error: { type: 'api_error', code: 'door_unavailable', message: 'The door of the sandbox is away. Try again.' },
})
const REFUSAL = [
  'HTTP/1.1 503 Service Unavailable',
  'content-type: application/json',
  `content-length: ${Buffer.byteLength(BODY)}`,
  'retry-after: 1',
  'connection: close',
  '',
  BODY,
].join('\r\n')

function refuse(client: Socket): void {
  client.end(REFUSAL)
  client.resume()
  client.setTimeout(REFUSAL_MS, () => client.destroy())
}
