import { type NetConnectOpts, connect, type Socket } from 'node:net'
import type { RequestOptions } from 'node:http'

/**
 * Where a peer listens. A socket of this host is the only kind; another kind, as TCP with certificates on both sides, is another
 * member of this type and another case of the two functions below. Nothing else in the product reads an address.
 */
export type Address = { readonly unix: string }

export function connectTo({ unix }: Address): Socket {
  return connect({ path: unix } satisfies NetConnectOpts)
}

/** What `http.request` takes for it. */
export function requestTo({ unix }: Address): Pick<RequestOptions, 'socketPath'> {
  return { socketPath: unix }
}
