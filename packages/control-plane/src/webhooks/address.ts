import { AirlockError } from '@airlock/contract'
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'

/** Where nothing public is: this machine, its networks, its link, and what leads to them by another spelling. */
const PRIVATE_4 = blockList('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
])
const PRIVATE_6 = blockList('ipv6', [
  '::/96',
  '::ffff:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  'fc00::/7',
  'fe80::/9',
  'ff00::/8',
])

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
  return isIP(address) === 4 ? PRIVATE_4.check(address, 'ipv4') : PRIVATE_6.check(address, 'ipv6')
}

async function resolve(host: string): Promise<readonly string[]> {
  try {
    return (await lookup(host, { all: true, order: 'verbatim' })).map(({ address }) => address)
  } catch (cause) {
    throw new AirlockError('server_unreachable', `${host} cannot be resolved.`, { cause })
  }
}

/** One list for each family: a list matches an IPv4 address by its spelling in IPv6, too. */
function blockList(family: 'ipv4' | 'ipv6', networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), family)
  }
  return list
}
