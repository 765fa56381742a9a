import { AirlockError } from '@airlock/contract'
import { parseHost } from '../name/host.ts'
import { ByteReader } from './byte-reader.ts'

const MAX_BYTES = 64 * 1024
const MAX_RECORD = 16 * 1024
/** Of a record: type, version, length. */
const HEADER = 5
const HANDSHAKE = 22
const CLIENT_HELLO = 1
const SERVER_NAME = 0
/** Encrypted ClientHello, and the draft before it: the name inside is not the one outside. */
const ENCRYPTED_NAMES: ReadonlySet<number> = new Set([0xfe_0d, 0xff_ce])

/** Record types that may come before a second ClientHello: change_cipher_spec, and early data that the server rejected. */
export const BEFORE_SECOND_HELLO: ReadonlySet<number> = new Set([20, 23])

/**
 * Reassembles one ClientHello from TLS records, however they are cut. Fails closed: bytes that are not exactly one ClientHello
 * with one server name are refused with `invalid_request`.
 */
export class ClientHelloReader {
  readonly #skipped: ReadonlySet<number>
  #raw = Buffer.alloc(0)

  constructor(skipped: ReadonlySet<number> = new Set()) {
    this.#skipped = skipped
  }

  /** Every byte that was pushed. */
  get raw(): Buffer {
    return this.#raw
  }

  /** The server name, once the ClientHello is whole. */
  push(chunk: Buffer): string | undefined {
    this.#raw = Buffer.concat([this.#raw, chunk])
    if (this.#raw.length > MAX_BYTES) throw refused('is too long')
    const message = this.#handshake()
    if (message.length >= 1 && message[0] !== CLIENT_HELLO) throw refused('is not one')
    if (message.length < 4) return undefined
    const length = message.readUIntBE(1, 3)
    if (length > MAX_BYTES) throw refused('is too long')
    if (message.length < 4 + length) return undefined
    if (message.length > 4 + length) throw refused('has bytes behind it')
    return readServerName(message.subarray(4))
  }

  /** What the records at hand hold of the handshake. */
  #handshake(): Buffer {
    const parts: Buffer[] = []
    let at = 0
    while (at < this.#raw.length) {
      const isHandshake = this.#raw[at] === HANDSHAKE
      if (!isHandshake && isWhole(Buffer.concat(parts))) break
      if (!isHandshake) this.#assertSkipped(at, parts)
      const length = recordLength(this.#raw.subarray(at))
      if (length === undefined) break
      if (isHandshake) parts.push(this.#raw.subarray(at + HEADER, at + HEADER + length))
      at += HEADER + length
    }
    return Buffer.concat(parts)
  }

  /** Records of other types come before the ClientHello, never within. */
  #assertSkipped(at: number, before: readonly Buffer[]): void {
    if (before.length > 0 || !this.#skipped.has(this.#raw[at] ?? 0))
      throw refused('is missing: the connection does not begin with TLS')
  }
}

/** Undefined until its header is whole. */
function recordLength(record: Buffer): number | undefined {
  if (record.length > 1 && record[1] !== 3) throw refused('is not TLS')
  if (record.length < HEADER) return undefined
  const length = record.readUInt16BE(3)
  if (length === 0 || length > MAX_RECORD) throw refused('has a record of a bad length')
  return length
}

/** Early data may follow a whole ClientHello. */
function isWhole(message: Buffer): boolean {
  return message.length >= 4 && message.length >= 4 + message.readUIntBE(1, 3)
}

function readServerName(body: Buffer): string {
  const reader = new ByteReader(body, () => refused('is cut'))
  reader.skip(2 + 32)
  reader.vector(1)
  reader.vector(2)
  reader.vector(1)
  const extensions = reader.vector(2)
  reader.end()
  const seen = new Map<number, ByteReader>()
  while (!extensions.isAtEnd) {
    const type = extensions.uint(2)
    if (seen.has(type)) throw refused('has an extension twice')
    if (ENCRYPTED_NAMES.has(type)) throw refused('hides its name (ECH)')
    seen.set(type, extensions.vector(2))
  }
  const names = seen.get(SERVER_NAME)
  if (!names) throw refused('has no server name')
  return readOneName(names)
}

function readOneName(extension: ByteReader): string {
  const list = extension.vector(2)
  extension.end()
  if (list.uint(1) !== 0) throw refused('has a name of an unknown kind')
  const name = list.vector(2).rest().toString('latin1')
  if (!list.isAtEnd) throw refused('has more than one server name')
  // An address is no server name (RFC 6066), and a dot at the end is part of no certificate.
  const host = parseHost(name)
  if (host.kind === 'address' || name.endsWith('.')) throw refused('has a server name that is not a host name')
  return host.text
}

const RETRY_RANDOM = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex')
/** Bytes of a server's first record up to the end of its random. */
export const SERVER_RANDOM_END = 5 + 4 + 2 + 32

/** Whether a server's first bytes, at least `SERVER_RANDOM_END`, ask the client for a second ClientHello (RFC 8446). */
export function isHelloRetry(bytes: Buffer): boolean {
  return bytes[0] === HANDSHAKE && bytes[5] === 2 && bytes.subarray(11, SERVER_RANDOM_END).equals(RETRY_RANDOM)
}

function refused(why: string): AirlockError {
  return new AirlockError('invalid_request', `The TLS ClientHello ${why}.`)
}
