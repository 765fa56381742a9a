import type { IncomingMessage } from 'node:http'
import { AirlockError } from '@airlock/contract'
import { type Authority, parseAuthority, showAuthority } from '../name/host.ts'

/** Where a CONNECT goes. Fails closed: a body and another Host are refused with `invalid_request`. */
export function readConnect({ url = '', headers, rawHeaders }: IncomingMessage): Authority {
  const to = parseAuthority(url)
  if (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0')
    throw new AirlockError('invalid_request', 'CONNECT has no body.')
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length
  const { host } = headers
  // Python before 3.12 sends none.
  const named = host === undefined ? to : parseAuthority(host, to.port)
  if (hosts > 1 || showAuthority(named) !== showAuthority(to))
    throw new AirlockError('invalid_request', 'The Host header names another host than CONNECT.')
  return to
}
