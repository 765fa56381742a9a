import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { isPrivateAddress } from '@airlock/contract'
import { buildConnector } from 'undici'

/** No connection was made: the upstream has seen nothing of the call. */
export class NotConnected extends Error {
  /** Code of undici or Node: `ECONNREFUSED`, `UND_ERR_CONNECT_TIMEOUT`, … */
  readonly reason: string

  constructor(cause: unknown) {
    super('not connected', { cause })
    this.name = 'NotConnected'
    this.reason = codeOf(cause)
  }
}

/** Makes connections to one origin: HTTP/1.1 alone, and without TLS to private addresses alone. */
export function connectorFor(origin: string, timeoutMs: number): buildConnector.connector {
  const plain = origin.startsWith('http:') ? { lookup: privateLookup(lookup) } : {}
  const connect = buildConnector({ allowH2: false, timeout: timeoutMs, maxCachedSessions: 0, ...plain })
  return (options, callback) =>
    connect(options, (...[error, socket]) => (error ? callback(new NotConnected(error), null) : callback(null, socket)))
}

/** Fails closed: one address that is not private refuses all, for any of them may be dialled. */
export function privateLookup(resolve: Resolve): LookupFunction {
  return (hostname, options, callback) =>
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '')
      const [first] = addresses
      if (first === undefined || !addresses.every(({ address }) => isPrivateAddress(address)))
        return callback(Object.assign(new TypeError('not a private address'), { code: 'NOT_PRIVATE' }), '')
      if (options.all) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    })
}

/** `lookup` of Node, asked for all addresses. */
type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** The code of an error. Its text is left out: it may quote the other side. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}
