import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { AirlockError } from '@airlock/contract'
import { type Authority, showAuthority } from '../name/host.ts'
import { type Endpoint, mayConnect, ownAddresses } from './own-address.ts'
import type { Names } from './resolve.ts'

interface DialOptions {
  readonly names: Pick<Names, 'resolve'>
  /** Addresses that are not public and may be connected to all the same. */
  readonly listed: readonly Endpoint[]
  /** For all addresses together. */
  readonly connectMs: number
  readonly signal: AbortSignal
}

/** More addresses of one name are not tried. */
const MAX_TRIES = 4

/**
 * Resolves, checks every address, and connects to a literal address of that answer: no name is resolved twice. Throws
 * `address_refused` when any address is not public, or `host_unreachable`. Precondition: the host was allowed.
 */
export async function dial(to: Authority, options: DialOptions): Promise<Socket> {
  const { host, port } = to
  if (options.signal.aborted) throw new AirlockError('not_ready', 'The connection was given up.')
  const addresses = host.kind === 'address' ? [host.text] : await options.names.resolve(host.text)
  const rules = { listed: options.listed, own: ownAddresses() }
  const refused = addresses.find((address) => !mayConnect({ address, port }, rules))
  if (refused !== undefined) throw addressRefused(to, refused)
  const late = AbortSignal.timeout(options.connectMs)
  const signal = AbortSignal.any([options.signal, late])
  let cause: unknown
  for (const address of addresses.slice(0, MAX_TRIES)) {
    if (signal.aborted) break
    try {
      return await connectTo({ address, port }, signal)
    } catch (error) {
      cause = error
    }
  }
  throw new AirlockError('host_unreachable', `${showAuthority(to)} could not be reached.`, { cause })
}

async function connectTo({ address, port }: Endpoint, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true, autoSelectFamily: false })
  try {
    await once(socket, 'connect', { signal })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function addressRefused(to: Authority, address: string): AirlockError {
  const shown = to.host.kind === 'address' ? '' : ` leads to ${address}, which`
  return new AirlockError('address_refused', `${showAuthority(to)}${shown} is not a public address.`)
}
