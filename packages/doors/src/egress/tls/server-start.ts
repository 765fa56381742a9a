import { AirlockError } from '@airlock/contract'
import { GrowingBuffer } from './growing-buffer.ts'
import { RecordReader } from './record-reader.ts'

const MAX_BYTES = 64 * 1024
const ALERT = 21
const HANDSHAKE = 22
const SERVER_HELLO = 2
/** Message type and length, version, then the random. */
const RANDOM_START = 1 + 3 + 2
const RANDOM_END = RANDOM_START + 32
/** The random of a ServerHello that asks for a second ClientHello (RFC 8446, 4.1.3). */
const RETRY_RANDOM = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex')

/**
 * Reads how a server answers a ClientHello, however its records are cut. Alerts may come first. Fails closed: every answer but a
 * ServerHello is refused with `invalid_request`, for the server may take what follows as plaintext.
 */
export class ServerStartReader {
  readonly #records = new RecordReader({
    assertType: (type) => {
      const mayCome = type === HANDSHAKE || (type === ALERT && this.#message.length === 0)
      if (!mayCome) throw refused('is not TLS')
    },
    refused,
  })
  readonly #message = new GrowingBuffer()
  #bytes = 0

  /** Whether the server asks for a second ClientHello, once that is known. */
  push(chunk: Buffer): 'hello' | 'retry' | undefined {
    this.#bytes += chunk.length
    for (const { type, bytes } of this.#records.read(chunk)) {
      if (type !== HANDSHAKE) continue
      this.#message.push(bytes)
      const message = this.#message.bytes
      if (message[0] !== SERVER_HELLO) throw refused('is not a ServerHello')
      if (message.length < RANDOM_END) continue
      return message.subarray(RANDOM_START, RANDOM_END).equals(RETRY_RANDOM) ? 'retry' : 'hello'
    }
    if (this.#bytes > MAX_BYTES) throw refused('is too long')
    return undefined
  }
}

function refused(why: string): AirlockError {
  return new AirlockError('invalid_request', `The host's answer to the TLS ClientHello ${why}.`)
}
