import { AirlockError } from '@airlock/contract'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isPublicAddress } from '@airlock/wire'

/** Domains for private use: what they resolve to differs from network to network (RFC 6761, 6762 and 8375, and `internal` by ICANN). */
const PRIVATE_DOMAINS: readonly string[] = [
  'localhost',
  'localdomain',
  'local',
  'internal',
  'home.arpa',
  'intranet',
  'private',
  'corp',
  'home',
  'lan',
]

/** The address to connect to: resolved once, and every address that the name has is public, unless private ones may be. */
export async function webhookAddress(url: URL, allowsPrivate: boolean): Promise<string> {
  const host = hostOf(url)
  if (url.port === '0') throw new AirlockError('forbidden', 'Port 0 is no port.')
  if (!allowsPrivate && isPrivateName(host)) throw new AirlockError('forbidden', `${host} is not a public name.`)
  const addresses = isIP(host) === 0 ? await resolve(host) : [host]
  const [first] = addresses
  if (first === undefined) throw new AirlockError('server_unreachable', `${host} has no address.`)
  if (!allowsPrivate && addresses.some(isPrivate))
    throw new AirlockError('forbidden', `${host} is not at a public address.`)
  return first
}

/** A name, or an address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/** Whatever it resolves to. A name of one label is completed by the search list of the host, so it is private as well. */
export function isPrivateName(host: string): boolean {
  if (isIP(host) !== 0) return false
  const labels = host.toLowerCase().split('.').filter(Boolean)
  return labels.length < 2 || PRIVATE_DOMAINS.some((domain) => `.${labels.join('.')}`.endsWith(`.${domain}`))
}

export function isPrivate(address: string): boolean {
  return !isPublicAddress(address)
}

async function resolve(host: string): Promise<readonly string[]> {
  try {
    return (await lookup(host, { all: true, order: 'verbatim' })).map(({ address }) => address)
  } catch (cause) {
    throw new AirlockError('server_unreachable', `${host} cannot be resolved.`, { cause })
  }
}
