import { isIPv4 } from 'node:net'
import { AirlockError } from '@airlock/contract'

/** A host as every reader of it reads it: lower case, ASCII, no dot at its end; addresses in one spelling. */
export interface Host {
  readonly kind: 'name' | 'address'
  /** An IPv6 address has no brackets here. */
  readonly text: string
}

export interface Authority {
  readonly host: Host
  readonly port: number
}

const MAX_NAME = 253
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
/** The last label of a host that URL parsers read as an IPv4 address. */
const NUMBER = /^(?:\d+|0x[0-9a-f]*)$/

/** `host:port`. Fails closed: text that two readers could read differently is refused with `invalid_request`. */
export function parseAuthority(text: string, defaultPort?: number): Authority {
  const parts = /^(\[[^[\]]*\]|[^:[\]]*)(?::([^:]*))?$/.exec(text)
  if (!parts || text.length > MAX_NAME + 7) throw refused('must be HOST:PORT')
  const [, host = '', port] = parts
  return { host: parseHost(host), port: parsePort(port, defaultPort) }
}

/** A name, or an address in any spelling. */
export function parseHost(text: string): Host {
  if (text.startsWith('[')) return { kind: 'address', text: parseIpv6(text) }
  const name = text.toLowerCase().replace(/\.$/, '')
  const labels = name.split('.')
  if (/[^ -~]/.test(text)) throw refused('must be ASCII; write other letters as xn--…')
  if (name.length > MAX_NAME || !labels.every((label) => LABEL.test(label)))
    throw refused('is not a name or an address')
  return NUMBER.test(labels.at(-1) ?? '') ? { kind: 'address', text: parseIpv4(name) } : { kind: 'name', text: name }
}

/** As it stands in a URL or a Host header. */
export function showAuthority({ host, port }: Authority): string {
  return `${host.text.includes(':') ? `[${host.text}]` : host.text}:${port}`
}

function parsePort(text: string | undefined, defaultPort: number | undefined): number {
  if (text === undefined && defaultPort !== undefined) return defaultPort
  const port = /^[1-9]\d{0,4}$/.test(text ?? '') ? Number(text) : 0
  if (port < 1 || port > 65_535) throw refused('must name a port from 1 to 65535')
  return port
}

/** Also `127.1`, `2130706433`, `0x7f.1` and `0177.0.0.1`, which resolvers of clients take for 127.0.0.1. */
function parseIpv4(text: string): string {
  const address = isIPv4(text) ? text : URL.parse(`http://${text}/`)?.hostname
  if (address === undefined || !isIPv4(address)) throw refused('is not a name or an address')
  return address
}

/** An address with a zone, such as `fe80::1%eth0`, is refused. */
function parseIpv6(text: string): string {
  const address = /^\[[0-9a-f:.]{2,45}\]$/i.test(text) ? URL.parse(`http://${text}/`)?.hostname : undefined
  if (address === undefined) throw refused('is not an IPv6 address')
  return address.slice(1, -1)
}

function refused(why: string): AirlockError {
  return new AirlockError('invalid_request', `The host ${why}.`)
}
