import { chmodSync, chownSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Address } from './address.ts'

/** A socket of this host. `uid` may connect beside root; null is whoever runs us. */
interface UnixAddress extends Address {
  readonly uid: number | null
}

/**
 * Where a process hears exactly one other: having come in here says who it is. There is one kind. Nothing that listens may
 * ask more of it than a port with certificates on both sides could give, for that is what another kind would be.
 */
export type PrivateAddress = UnixAddress

export interface PrivateListener {
  /** Takes no new connection. */
  stopListening(): void
  /** That, and cuts who is connected. */
  close(): void
}

interface HttpOptions {
  readonly maxConnections: number
  /** How long a request may take to arrive whole; 0 is as long as it likes. */
  readonly requestMs: number
  readonly onRequest: RequestListener
  readonly onUpgrade?: (request: IncomingMessage, socket: Duplex) => void
}

const HEADERS_MS = 5_000
/** How often Node looks for heads that are late. */
const CHECK_MS = 1_000

export async function listenForHttp(address: PrivateAddress, options: HttpOptions): Promise<PrivateListener> {
  const timeouts = {
    headersTimeout: HEADERS_MS,
    requestTimeout: options.requestMs,
    connectionsCheckingInterval: CHECK_MS,
  }
  const server = createHttpServer(timeouts, options.onRequest)
  if (options.onUpgrade) server.on('upgrade', options.onUpgrade)
  return listen(server, address, options.maxConnections)
}

interface ConnectionOptions {
  readonly maxConnections: number
  /** It is paused: whoever serves it resumes it. */
  readonly onConnection: (socket: Socket) => void
}

export async function listenForConnections(
  address: PrivateAddress,
  { maxConnections, onConnection }: ConnectionOptions,
): Promise<PrivateListener> {
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    // A connection that breaks before it is served says nothing new.
    socket.on('error', () => {})
    onConnection(socket)
  })
  return listen(server, address, maxConnections)
}

async function listen(server: Server, address: PrivateAddress, maxConnections: number): Promise<PrivateListener> {
  const sockets = new Set<Socket>()
  server.maxConnections = maxConnections
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await bind(server, address)
  return {
    stopListening: () => void server.close(),
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Fails closed: a socket that could not be given to its owner is no socket. */
async function bind(server: Server, { unix, uid }: PrivateAddress): Promise<void> {
  rmSync(unix, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    bornClosed(() => server.listen(unix, resolve))
  })
  try {
    // Where the directory has a default ACL, that counted and not the umask.
    chmodSync(unix, 0o600)
    if (uid !== null) chownSync(unix, uid, uid)
  } catch (error) {
    server.close()
    throw error
  }
}

/**
 * Whatever the umask of the process is, there is no moment in which another could connect. The file is made before `listen`
 * returns, so nothing else that is under way is made with this umask, and two that listen at once leave the right one.
 */
function bornClosed(listen: () => void): void {
  const before = process.umask(0o177)
  try {
    listen()
  } finally {
    process.umask(before)
  }
}
