import { AirlockError } from '@airlock/contract'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import { type Holder, Shares } from './shares.ts'

export interface ConnectionBounds {
  /** Connections at once that have shown no good key, of everybody and of one address. */
  readonly unproven: number
  readonly unprovenPerAddress: number
  /** Connections at once that have shown one, of everybody; callers share them. */
  readonly proven: number
  /** Longest time that a connection may be open without a good key. */
  readonly unprovenMs: number
}

interface ConnectionOptions {
  readonly bounds: ConnectionBounds
  /** A trusted proxy says where each request comes from. */
  readonly isProxied: boolean
  readonly onAccept: () => void
}

interface Connection {
  readonly socket: Socket
  /** Runs while no good key was shown. */
  timer: NodeJS.Timeout | undefined
  /** Undefined until the trusted proxy forwards it. */
  address: string | undefined
  /** The caller of the last good key; undefined without one, or when the share of that caller is used up. */
  caller: Holder | undefined
  /** Whether a request is unanswered. */
  isBusy: boolean
  /** Pipelined requests. */
  readonly waiting: (() => void)[]
}

interface Exchanged {
  readonly request: IncomingMessage
  readonly response: Parameters<RequestListener>[1]
}

/** Longest queue of pipelined requests on one connection. */
const MAX_PIPELINED = 16

/**
 * Open connections. Every connection is accepted. Connections without a good key (strangers) make room for one another, oldest
 * first, so they never keep out callers with a key. Connections with a key count against the share of their caller; beyond that
 * share they are treated as strangers.
 */
export class OpenConnections {
  readonly #bounds: ConnectionBounds
  readonly #onAccept: () => void
  readonly #isProxied: boolean
  readonly #shares: Shares
  readonly #known = new WeakMap<Duplex, Connection>()
  /** Oldest first, as sets are. */
  readonly #unproven = new Set<Connection>()
  readonly #byAddress = new Map<string, Set<Connection>>()
  readonly #byCaller = new Map<string, Set<Connection>>()

  constructor({ bounds, isProxied, onAccept }: ConnectionOptions) {
    this.#bounds = bounds
    this.#onAccept = onAccept
    this.#isProxied = isProxied
    this.#shares = new Shares(bounds.proven)
  }

  watch(server: Server): Server {
    if (server instanceof TlsServer) this.#watchTls(server)
    else server.on('connection', (socket: Socket) => void this.#accept(socket))
    return server
  }

  /** Passes requests on, one at a time for each connection. */
  inTurn(listener: RequestListener): RequestListener {
    return (request, response) => {
      const connection = this.#known.get(request.socket)
      // Fails closed: a connection that is not counted is not served.
      if (!connection || connection.socket.destroyed) return void request.socket.destroy()
      const begin = (): void => this.#begin(connection, { request, response }, listener)
      if (!connection.isBusy) begin()
      else if (connection.waiting.push(begin) > MAX_PIPELINED) connection.socket.destroy()
    }
  }

  /** Sets the address that a trusted proxy forwarded. */
  locate(socket: Duplex, address: string): void {
    const connection = this.#known.get(socket)
    if (!connection || connection.caller !== undefined || connection.socket.destroyed) return
    remove(this.#byAddress, connection.address, connection)
    connection.address = networkOf(address)
    this.#seat(connection)
  }

  /**
   * Counts the connection as that of a caller with a good key. When the share is used up, an idle connection of a larger holder
   * is closed for it. When there is none, the connection stays a stranger and the refusal is returned.
   */
  prove(socket: Duplex, { tenant, actor }: Holder): AirlockError | undefined {
    const connection = this.#known.get(socket)
    if (!connection || connection.socket.destroyed) return undefined
    const caller = { tenant, actor }
    if (connection.caller && nameOf(connection.caller) === nameOf(caller)) return undefined
    if (connection.caller) this.#seat(this.#release(connection))
    if (!this.#takeShare(caller)) return refusal()
    this.#release(connection)
    connection.caller = caller
    add(this.#byCaller, nameOf(caller), connection)
    return undefined
  }

  #takeShare(caller: Holder): boolean {
    for (;;) {
      if (this.#shares.take(caller) === undefined) return true
      const idle = this.#findIdle(this.#shares.largerThan(caller))
      if (!idle) return false
      this.#evict(idle)
    }
  }

  #findIdle(callers: readonly Holder[]): Connection | undefined {
    for (const caller of callers)
      for (const connection of this.#byCaller.get(nameOf(caller)) ?? []) if (!connection.isBusy) return connection
    return undefined
  }

  #begin(connection: Connection, { request, response }: Exchanged, listener: RequestListener): void {
    connection.isBusy = true
    response.once('close', () => {
      connection.isBusy = false
      if (!connection.socket.destroyed) connection.waiting.shift()?.()
    })
    listener(request, response)
  }

  /** Requests over TLS arrive on another object than the connection: both have the same peer. */
  #watchTls(server: TlsServer): void {
    const byPeer = new Map<string, Connection>()
    server.on('connection', (socket: Socket) => {
      const peer = peerOf(socket)
      const connection = this.#accept(socket)
      byPeer.set(peer, connection)
      // The peer may use its port again before this event.
      socket.once('close', () => byPeer.get(peer) === connection && byPeer.delete(peer))
    })
    server.on('secureConnection', (socket) => {
      const connection = byPeer.get(peerOf(socket))
      if (connection) this.#known.set(socket, connection)
    })
  }

  #accept(socket: Socket): Connection {
    this.#onAccept()
    const address = this.#isProxied ? undefined : networkOf(socket.remoteAddress ?? '')
    const connection: Connection = {
      socket,
      timer: undefined,
      address,
      caller: undefined,
      isBusy: false,
      waiting: [],
    }
    this.#known.set(socket, connection)
    socket.once('close', () => this.#release(connection))
    this.#seat(connection)
    return connection
  }

  /** Adds the connection to the strangers, and evicts one when there are too many. */
  #seat(connection: Connection): void {
    const { unproven, unprovenPerAddress, unprovenMs } = this.#bounds
    const { address, socket } = connection
    connection.timer ??= setTimeout(() => socket.destroy(), unprovenMs).unref()
    this.#unproven.add(connection)
    const neighbours = address === undefined ? undefined : add(this.#byAddress, address, connection)
    const count = neighbours?.size ?? 0
    if (neighbours && count > unprovenPerAddress) this.#evictOldest(neighbours)
    else if (this.#unproven.size <= unproven) return
    // An address with many evicts its own, so a newcomer from another address has time to show its key.
    else if (neighbours && count * this.#byAddress.size > unproven) this.#evictOldest(neighbours)
    else this.#evictOldest(this.#unproven)
  }

  #evictOldest(among: ReadonlySet<Connection>): void {
    const [oldest] = among
    if (oldest) this.#evict(oldest)
  }

  #evict(connection: Connection): void {
    this.#release(connection)
    connection.socket.destroy()
  }

  /** Takes it out of every count. Idempotent. */
  #release(connection: Connection): Connection {
    clearTimeout(connection.timer)
    connection.timer = undefined
    this.#unproven.delete(connection)
    remove(this.#byAddress, connection.address, connection)
    const { caller } = connection
    connection.caller = undefined
    if (caller && remove(this.#byCaller, nameOf(caller), connection)) this.#shares.give(caller)
    return connection
  }
}

const MOST: ConnectionBounds = {
  unproven: 2_048,
  unprovenPerAddress: 512,
  proven: 8_192,
  unprovenMs: 30_000,
}

/** The usual bounds, or smaller ones for a process that may open few files. */
export function connectionBounds(openFiles = readOpenFiles()): ConnectionBounds {
  return {
    ...MOST,
    unproven: Math.min(MOST.unproven, Math.floor(openFiles / 8)),
    unprovenPerAddress: Math.min(MOST.unprovenPerAddress, Math.floor(openFiles / 32)),
    proven: Math.min(MOST.proven, Math.floor(openFiles / 2)),
  }
}

/** Node raises the soft limit to the hard limit when it starts. */
function readOpenFiles(): number {
  const found = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return found === undefined ? Infinity : Number(found)
}

/** The address of IPv4, or the /64 of IPv6: one customer of a provider. */
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

function nameOf({ tenant, actor }: Holder): string {
  return `${tenant} ${actor}`
}

function refusal(): AirlockError {
  return new AirlockError('too_many_requests', 'You have as many connections open as your share allows.', {
    hint: 'Use fewer connections: each can be used again.',
  })
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
