import { AirlockError } from '@airlock/contract'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'

export interface ConnectionBounds {
  /** Connections at once that have shown no good key, of everybody and of one address. */
  readonly unproven: number
  readonly unprovenPerAddress: number
  /** Connections at once that have shown one, of everybody and of one caller. */
  readonly proven: number
  readonly provenPerCaller: number
  /** How long one may be open without a good key, whatever it says. */
  readonly unprovenMs: number
}

interface Connection {
  readonly socket: Socket
  readonly timer: NodeJS.Timeout
  /** Undefined while only a proxy knows it. */
  address: string | undefined
  /** Who showed a good key on it last; undefined when nobody has. */
  caller: string | undefined
}

/**
 * Who is connected. Everybody is let in, and whoever shows a good key stays; all others make room for one another, the oldest
 * first. So strangers, however many, keep nobody out who has a key, and hold no more than their share of descriptors.
 */
export class OpenConnections {
  readonly #bounds: ConnectionBounds
  readonly #isProxied: boolean
  readonly #known = new WeakMap<Duplex, Connection>()
  /** Oldest first, as sets are. */
  readonly #unproven = new Set<Connection>()
  readonly #byAddress = new Map<string, Set<Connection>>()
  readonly #byCaller = new Map<string, Set<Connection>>()
  #proven = 0

  constructor(bounds: ConnectionBounds, isProxied: boolean) {
    this.#bounds = bounds
    this.#isProxied = isProxied
  }

  watch(server: Server): Server {
    if (server instanceof TlsServer) this.#watchTls(server)
    else server.on('connection', (socket: Socket) => void this.#accept(socket))
    return server
  }

  /** Whether nobody has shown a good key on it yet. */
  isUnproven(socket: Duplex): boolean {
    return this.#known.get(socket)?.caller === undefined
  }

  /** A whole head has come by a trusted proxy, which says where from. */
  locate(socket: Duplex, address: string): void {
    const connection = this.#known.get(socket)
    if (!connection || connection.caller !== undefined || connection.socket.destroyed) return
    remove(this.#byAddress, connection.address, connection)
    connection.address = networkOf(address)
    this.#seat(connection)
  }

  /** A good key was shown: from now on it counts as that caller's. */
  prove(socket: Duplex, caller: string): void {
    const connection = this.#known.get(socket)
    if (!connection || connection.caller === caller || connection.socket.destroyed) return
    this.#release(connection)
    connection.caller = caller
    add(this.#byCaller, caller, connection)
    this.#proven += 1
  }

  /** Why a caller may have no more connections, or undefined. What takes away is heard all the same. */
  refuse(caller: string): AirlockError | undefined {
    const { proven, provenPerCaller } = this.#bounds
    const hint = 'Use fewer connections: each can be used again.'
    if ((this.#byCaller.get(caller)?.size ?? 0) > provenPerCaller)
      return new AirlockError('too_many_requests', `You have more than ${provenPerCaller} connections open.`, { hint })
    if (this.#proven <= proven) return undefined
    return new AirlockError('too_many_requests', 'All callers together have too many connections open.', { hint })
  }

  /** Requests come by another object than the connection did, with the same peer: before that, TLS has to be agreed on. */
  #watchTls(server: TlsServer): void {
    const byPeer = new Map<string, Connection>()
    server.on('connection', (socket: Socket) => {
      const peer = peerOf(socket)
      byPeer.set(peer, this.#accept(socket))
      socket.once('close', () => byPeer.delete(peer))
    })
    server.on('secureConnection', (socket) => {
      const connection = byPeer.get(peerOf(socket))
      if (connection) this.#known.set(socket, connection)
    })
  }

  #accept(socket: Socket): Connection {
    const timer = setTimeout(() => socket.destroy(), this.#bounds.unprovenMs).unref()
    const address = this.#isProxied ? undefined : networkOf(socket.remoteAddress ?? '')
    const connection: Connection = { socket, timer, address, caller: undefined }
    this.#known.set(socket, connection)
    socket.once('close', () => this.#release(connection))
    this.#seat(connection)
    return connection
  }

  /** Takes a place among strangers, and gives one up for it when there is none left. */
  #seat(connection: Connection): void {
    const { unproven, unprovenPerAddress } = this.#bounds
    const { address } = connection
    this.#unproven.add(connection)
    const neighbours = address === undefined ? undefined : add(this.#byAddress, address, connection)
    if (neighbours && neighbours.size > unprovenPerAddress) this.#evict(neighbours)
    else if (this.#unproven.size > unproven) this.#evict(this.#unproven)
  }

  #evict(among: ReadonlySet<Connection>): void {
    const [oldest] = among
    if (!oldest) return
    this.#release(oldest)
    oldest.socket.destroy()
  }

  /** Takes it out of every count. Idempotent. */
  #release(connection: Connection): void {
    clearTimeout(connection.timer)
    this.#unproven.delete(connection)
    remove(this.#byAddress, connection.address, connection)
    if (remove(this.#byCaller, connection.caller, connection)) this.#proven -= 1
  }
}

const MOST: ConnectionBounds = {
  unproven: 2_048,
  unprovenPerAddress: 512,
  proven: 8_192,
  provenPerCaller: 1_024,
  unprovenMs: 30_000,
}

/** As many as usual, or what a process with few descriptors has room for beside its files and sockets. */
export function connectionBounds(openFiles = readOpenFiles()): ConnectionBounds {
  return {
    ...MOST,
    unproven: Math.min(MOST.unproven, Math.floor(openFiles / 8)),
    unprovenPerAddress: Math.min(MOST.unprovenPerAddress, Math.floor(openFiles / 32)),
    proven: Math.min(MOST.proven, Math.floor(openFiles / 2)),
    provenPerCaller: Math.min(MOST.provenPerCaller, Math.floor(openFiles / 16)),
  }
}

/** Node has raised it as far as it may when it started. */
function readOpenFiles(): number {
  const found = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return found === undefined ? Infinity : Number(found)
}

/** One customer of a provider: an address of IPv4, the first half of one of IPv6. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  const [head = '', tail] = address.toLowerCase().split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length
  return [...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4).join(':')
}

function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}

function add(to: Map<string, Set<Connection>>, key: string, connection: Connection): ReadonlySet<Connection> {
  const found = to.get(key) ?? new Set()
  to.set(key, found.add(connection))
  return found
}

function remove(from: Map<string, Set<Connection>>, key: string | undefined, connection: Connection): boolean {
  const found = key === undefined ? undefined : from.get(key)
  if (!found?.delete(connection)) return false
  if (found.size === 0) from.delete(key ?? '')
  return true
}
