import type { IncomingMessage } from 'node:http'
import { AirlockError } from '@airlock/contract'
import { type Authority, parseAuthority, showAuthority } from '../name/host.ts'

/** A request in plain HTTP, written anew: what is judged is what arrives. */
export interface PlainRequest {
  readonly to: Authority
  readonly method: string
  readonly path: string
  /** Name and value in turn. */
  readonly headers: readonly string[]
}

const HTTP_PORT = 80
/** About one connection, and not about the request. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Fails closed: throws `invalid_request` unless every reader would read the same in it. */
export function readPlainRequest(request: IncomingMessage): PlainRequest {
  const { method = '', httpVersion } = request
  const names = headerNames(request)
  const { authority, path } = splitAddress(request)
  if (httpVersion !== '1.1') throw refused('The door takes HTTP/1.1 alone.')
  if (names.includes('upgrade')) throw refused('The door takes no upgrade.')
  if (count(names, 'host') !== 1) throw refused('The request needs one Host header.')
  const to = parseAuthority(authority, HTTP_PORT)
  const named = parseAuthority(request.headers.host ?? '', HTTP_PORT)
  if (showAuthority(named) !== showAuthority(to)) throw refused('The Host header names another host than the address.')
  assertOneFraming(request, names)
  return { to, method, path, headers: [...hostHeader(to), ...forwarded(request), ...chunkedHeader(names)] }
}

function splitAddress({ url = '' }: IncomingMessage): { readonly authority: string; readonly path: string } {
  const parts = /^http:\/\/([^/?#]+)([^#]*)$/i.exec(url)
  if (/^https:/i.test(url)) throw refused('https is reached by CONNECT.')
  if (!parts) throw refused('The door is a proxy: it takes CONNECT, and http:// with a host.')
  const [, authority = '', path = ''] = parts
  return { authority, path: path.startsWith('/') ? path : `/${path}` }
}

/** An HTTP header list without what is about one connection, for either direction. */
export function forwarded({ rawHeaders, headers }: Pick<IncomingMessage, 'rawHeaders' | 'headers'>): readonly string[] {
  const named = (headers.connection ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
  const dropped = new Set([...HOP_BY_HOP, ...named.filter((name) => name !== 'content-length')])
  return rawHeaders.flatMap((name, at) =>
    at % 2 === 0 && !dropped.has(name.toLowerCase()) ? [name, rawHeaders[at + 1] ?? ''] : [],
  )
}

function hostHeader(to: Authority): readonly string[] {
  const shown = showAuthority(to)
  return ['Host', to.port === HTTP_PORT ? shown.slice(0, shown.lastIndexOf(':')) : shown]
}

/** Named, because Node chunks no body of GET, HEAD, DELETE and OPTIONS by itself: it would arrive as another request. */
function chunkedHeader(names: readonly string[]): readonly string[] {
  return names.includes('transfer-encoding') ? ['Transfer-Encoding', 'chunked'] : []
}

/** A body is chunked alone or of one length alone. */
function assertOneFraming({ headers }: IncomingMessage, names: readonly string[]): void {
  const isChunked = names.includes('transfer-encoding')
  const lengths = count(names, 'content-length')
  const isOdd = isChunked && (headers['transfer-encoding']?.toLowerCase() !== 'chunked' || lengths > 0)
  const isBadLength = lengths > 1 || (lengths === 1 && !/^\d{1,15}$/.test(headers['content-length'] ?? ''))
  if (isOdd || isBadLength || count(names, 'transfer-encoding') > 1)
    throw refused('The request says in two ways how long it is.')
}

function headerNames({ rawHeaders }: IncomingMessage): readonly string[] {
  return rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
}

function count(names: readonly string[], name: string): number {
  return names.filter((other) => other === name).length
}

function refused(message: string): AirlockError {
  return new AirlockError('invalid_request', message)
}
