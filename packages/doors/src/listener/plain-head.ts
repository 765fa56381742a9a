import type { IncomingMessage } from 'node:http'
import { AirlockError } from '@airlock/contract'
import { tooLarge } from '@airlock/wire'

/** What a request says beside its line and its body. */
export interface Head {
  /** Null without one. */
  readonly token: string | null
}

interface Expected {
  readonly hosts: ReadonlySet<string>
  readonly maxBodyBytes: number
}

/** Headers by which a request could mean two things to two readers. */
const REFUSED: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'content-encoding',
  'upgrade',
  'expect',
  'te',
  'trailer',
  'proxy-authorization',
  'proxy-connection',
])
const ONCE = ['host', 'authorization', 'content-length', 'content-type']

/** Fails closed: throws unless every reader would read the same in it. */
export function readHead(request: IncomingMessage, { hosts, maxBodyBytes }: Expected): Head {
  const { headers } = request
  if (!isPlain(request) || !hosts.has(headers.host ?? ''))
    throw new AirlockError('invalid_request', 'The request is not one for this door.')
  const length = Number(headers['content-length'] ?? '0')
  if (length > 0 && maxBodyBytes === 0) throw new AirlockError('invalid_request', 'The door takes no body here.')
  // Also what is no number: the parser took it, and we do not.
  if (!(length <= maxBodyBytes)) throw tooLarge(maxBodyBytes)
  return { token: /^Bearer (\S{1,8192})$/.exec(headers.authorization ?? '')?.[1] ?? null }
}

function isPlain({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  const names = rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  const isRepeated = ONCE.some((name) => names.filter((other) => other === name).length > 1)
  const isOdd = names.some((name) => REFUSED.has(name))
  return httpVersion === '1.1' && !isRepeated && !isOdd
}
