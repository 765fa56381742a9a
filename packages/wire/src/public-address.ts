import { BlockList, isIPv4 } from 'node:net'

/** IPv4 that is not on the public internet, and addresses by which clouds serve metadata. */
const NOT_PUBLIC_IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
]

/** All that is public: loopback, private, link-local, multicast, mapped IPv4 and NAT64 are outside of it. */
const GLOBAL_IPV6 = ['2000::', 3] as const
/** Within that: protocols (with Teredo), documentation, 6to4, and others that lead elsewhere. */
const NOT_PUBLIC_IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
]

const notPublicIpv4 = listOf(NOT_PUBLIC_IPV4, 'ipv4')
const globalIpv6 = listOf([GLOBAL_IPV6], 'ipv6')
const notPublicIpv6 = listOf(NOT_PUBLIC_IPV6, 'ipv6')

/** Fails closed: false for text that is not an address. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !notPublicIpv4.check(address, 'ipv4')
  return globalIpv6.check(address, 'ipv6') && !notPublicIpv6.check(address, 'ipv6')
}

function listOf(subnets: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [net, prefix] of subnets) list.addSubnet(net, prefix, family)
  return list
}
