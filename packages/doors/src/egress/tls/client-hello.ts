import { AirlockError } from '@airlock/contract'
import { parseHost } from '../name/host.ts'
import { ByteReader } from './byte-reader.ts'
import { GrowingBuffer } from './growing-buffer.ts'
import { type Fragment, RecordReader } from './record-reader.ts'

const MAX_BYTES = 64 * 1024
const HANDSHAKE = 22
const CLIENT_HELLO = 1
const SERVER_NAME = 0
/** Encrypted ClientHello and its drafts: the name inside is not the one outside. */
const ENCRYPTED_NAMES: ReadonlySet<number> = new Set([
  0xfe_08, 0xfe_09, 0xfe_0a, 0xfe_0b, 0xfe_0c, 0xfe_0d, 0xff_02, 0xff_03, 0xff_ce,
])

/** Record types that may come before a second ClientHello: change_cipher_spec, and early data that the server rejected. */
export const BEFORE_SECOND_HELLO: ReadonlySet<number> = new Set([20, 23])

/** A ClientHello that is whole. */
export interface ClientHello {
  readonly serverName: string
  /** Every byte up to its end. */
  readonly bytes: Buffer
  /** What came behind it in the same chunk: nothing is known of it. */
  readonly rest: Buffer
}

/**
 * Reassembles one ClientHello from TLS records, however they are cut. Fails closed: bytes that are not exactly one ClientHello
 * with one server name are refused with `invalid_request`.
 */
export class ClientHelloReader {
  readonly #records: RecordReader
  readonly #raw = new GrowingBuffer()
  readonly #message = new GrowingBuffer()

  constructor(skipped: ReadonlySet<number> = new Set()) {
    const assertType = (type: number) => {
      if (type === HANDSHAKE || (this.#message.length === 0 && skipped.has(type))) return
      throw refused('is missing: the connection does not begin with TLS')
    }
    this.#records = new RecordReader({ assertType, refused })
  }

  push(chunk: Buffer): ClientHello | undefined {
    for (const fragment of this.#records.read(chunk)) {
      if (fragment.type !== HANDSHAKE || !this.#take(fragment)) continue
      this.#keep(chunk.subarray(0, fragment.end))
      const serverName = readServerName(this.#message.bytes.subarray(4))
      return { serverName, bytes: this.#raw.bytes, rest: chunk.subarray(fragment.end) }
    }
    this.#keep(chunk)
    return undefined
  }

  #keep(bytes: Buffer): void {
    this.#raw.push(bytes)
    if (this.#raw.length > MAX_BYTES) throw refused('is too long')
  }

  /** Whether the message is whole. */
  #take({ bytes, left }: Fragment): boolean {
    this.#message.push(bytes)
    const message = this.#message.bytes
    if (message[0] !== CLIENT_HELLO) throw refused('is not one')
    if (message.length < 4) return false
    const length = message.readUIntBE(1, 3)
    if (length > MAX_BYTES) throw refused('is too long')
    if (message.length < 4 + length) return false
    if (message.length > 4 + length || left > 0) throw refused('has bytes behind it')
    return true
  }
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

function refused(why: string): AirlockError {
  return new AirlockError('invalid_request', `The TLS ClientHello ${why}.`)
}
