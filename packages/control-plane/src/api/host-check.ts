import { AirlockError } from '@airlock/contract'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIPv4 } from 'node:net'

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

const ONCE = ['host', 'authorization'] as const

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/**
 * A page of some other site can make a browser resolve its own name to 127.0.0.1 and then talk to us as "same origin".
 * It cannot choose another Host than its name, so on loopback we answer to loopback names only. A target with a name of its
 * own (`GET http://name/path`) counts before Host, so it must be one of them too.
 */
export function throwOnForeignHost({ headers, url = '' }: Pick<IncomingMessage, 'headers' | 'url'>): void {
  const target = url.startsWith('/') ? undefined : /^https?:\/\/([^/?#]*)/i.exec(url)?.[1]
  for (const name of target === undefined ? [headers.host] : [headers.host, target])
    if (!LOOPBACK_NAMES.has(nameIn(name ?? '')))
      throw new AirlockError('forbidden', 'This server listens on loopback and answers to loopback names only.', {
        hint: 'Use http://localhost or http://127.0.0.1.',
      })
}

function nameIn(authority: string): string {
  return authority.replace(/:\d+$/, '').toLowerCase()
}

/** Two readers of a request could each believe another of two such headers. */
export function throwOnRepeated(rawHeaders: readonly string[]): void {
  for (const name of ONCE) {
    const isNamed = (text: string, at: number): boolean =>
      at % 2 === 0 && text.length === name.length && text.toLowerCase() === name
    if (rawHeaders.findIndex(isNamed) !== rawHeaders.findLastIndex(isNamed))
      throw new AirlockError('invalid_request', `The header ${name} is there more than once.`)
  }
}

/** What a browser sends for a page: only one of this machine, or one that this server itself gave, may ask. */
export function throwOnForeignOrigin({ origin, host }: IncomingHttpHeaders, isLocal: boolean): void {
  if (origin === undefined) return
  const url = URL.canParse(origin) ? new URL(origin) : undefined
  const isOurs = isLocal
    ? LOOPBACK_NAMES.has(url?.hostname ?? '')
    : url !== undefined && url.host === host?.toLowerCase()
  if (!isOurs)
    throw new AirlockError('forbidden', 'Pages of other sites may not ask.', {
      hint: 'Ask from a program of your own.',
    })
}
