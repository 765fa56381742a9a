import { BlockList, isIPv4 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isPublicAddress } from '@airlock/wire'

/** An address and its port. */
export interface Endpoint {
  readonly address: string
  readonly port: number
}

/** Addresses of this host as they are now: interfaces come and go. */
export function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? [])
}

/** Whether a sandbox may be connected to it: public and not of this host, or listed by the operator. */
export function mayConnect(
  { address, port }: Endpoint,
  { listed, own }: { readonly listed: readonly Endpoint[]; readonly own: readonly string[] },
): boolean {
  if (listed.some((one) => one.address === address && one.port === port)) return true
  return isPublicAddress(address) && !isAmong(address, own)
}

/** Compared as addresses: the same one has more than one spelling. */
function isAmong(address: string, others: readonly string[]): boolean {
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  for (const other of others) if (isIPv4(other) === isIPv4(address)) list.addAddress(other, family)
  return list.check(address, family)
}
