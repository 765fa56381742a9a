import { lookup } from 'node:dns'
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isPrivateAddress } from '@airlock/contract'
import { isPublicAddress } from '@airlock/wire'
import { buildConnector } from 'undici'
import { NotConnected } from '../upstream/connect.ts'

export interface Endpoint {
  readonly address: string
  readonly port: number
}

/** An address that is neither public nor listed by the operator. */
class AddressRefused extends Error {
  readonly code = 'ADDRESS_REFUSED'
}

/**
 * Makes one connection to the origin of a tool: HTTP/1.1 alone, to a public address or one that the operator listed, and without
 * TLS to a listed private address alone. One address that may not be dialled refuses all of its name.
 */
export function connectorFor(origin: URL, listed: readonly Endpoint[], timeoutMs: number): buildConnector.connector {
  const isPlain = origin.protocol === 'http:'
  const port = Number(origin.port || (isPlain ? 80 : 443))
  const own = new Set(Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []))
  const mayDial = (address: string) => {
    if (listed.some((one) => one.address === address && one.port === port)) return !isPlain || isPrivateAddress(address)
    return !isPlain && isPublicAddress(address) && !isAmong(address, own)
  }
  const connect = buildConnector({ allowH2: false, timeout: timeoutMs, maxCachedSessions: 0, lookup: checked(mayDial) })
  return (options, callback) => {
    // A literal address is connected to without a lookup.
    const literal = options.hostname.replaceAll(/[[\]]/g, '')
    if (isIP(literal) !== 0 && !mayDial(literal)) return callback(new NotConnected(new AddressRefused()), null)
    connect(options, (...[error, socket]) => (error ? callback(new NotConnected(error), null) : callback(null, socket)))
  }
}

/** The addresses that are checked are those that are connected to. */
function checked(mayDial: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '')
      const [first] = addresses
      if (first === undefined || !addresses.every(({ address }) => mayDial(address)))
        return callback(Object.assign(new AddressRefused(), {}), '')
      if (options.all) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    })
}

/** Compared as addresses: the same one has more than one spelling. */
function isAmong(address: string, others: ReadonlySet<string>): boolean {
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  for (const other of others) if (isIPv4(other) === isIPv4(address)) list.addAddress(other, family)
  return list.check(address, family)
}
