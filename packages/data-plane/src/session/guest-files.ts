import type { AirlockError, FileOperation } from '@airlock/contract'
import type { GuestRequest, GuestResults } from '@airlock/contract/guest'
import { ANSWER_MS, withinDeadline } from './deadline.ts'
import { Download, type FileTransfer, Upload } from './file-transfer.ts'
import type { GuestConnection, Op } from './guest-connection.ts'
import type { GuestWire } from './guest-wire.ts'

/** The files of one guest. */
export class GuestFiles {
  readonly #wire: GuestWire
  readonly #nextChannel: () => number
  readonly #transfers = new Map<number, FileTransfer>()

  constructor(wire: GuestWire, nextChannel: () => number) {
    this.#wire = wire
    this.#nextChannel = nextChannel
  }

  async read(path: string, signal?: AbortSignal): Promise<{ size: number; bytes: AsyncIterable<Buffer> }> {
    const connection = await this.#wire.connectionSoon(signal)
    const channel = this.#nextChannel()
    const download = new Download((offset) => connection.send({ type: 'ack', channel, offset }))
    const release = this.#open(connection, channel, download)
    try {
      const { size } = await request(connection, { op: 'file.read', path, channel }, signal)
      // Whoever never reads must abort, or the file stays open until the guest's next connection.
      signal?.addEventListener('abort', release, { once: true })
      return { size, bytes: releasing(download.bytes(size, signal), release) }
    } catch (error) {
      release()
      throw error
    }
  }

  /** Resolves with the number of bytes once the guest has closed the file. */
  // oxlint-disable-next-line max-params -- where, how, what, until when: the order of every file call
  async write(
    path: string,
    mode: 'truncate' | 'append',
    bytes: AsyncIterable<Buffer>,
    signal?: AbortSignal,
  ): Promise<number> {
    const connection = await this.#wire.connectionSoon(signal)
    const channel = this.#nextChannel()
    const upload = new Upload({
      put: (offset, chunk) => connection.sendData({ channel, offset, bytes: chunk }),
      end: () => connection.send({ type: 'eof', channel }),
    })
    const release = this.#open(connection, channel, upload)
    try {
      await request(connection, { op: 'file.write', path, mode, channel }, signal)
      return await upload.send(bytes, signal)
    } finally {
      release()
    }
  }

  async operate(operation: FileOperation): Promise<GuestResults[FileOperation['op']]> {
    return await this.#wire.ask(operation)
  }

  /** The file that is on its way on this channel, if it is one of ours. */
  transferOn(channel: number): FileTransfer | undefined {
    return this.#transfers.get(channel)
  }

  /** Whatever is on its way will not arrive. */
  detached(lost: AirlockError): void {
    for (const transfer of this.#transfers.values()) transfer.fail(lost)
  }

  /** Makes a channel; the function that is returned gives it up, whatever state it is in. */
  #open(connection: GuestConnection, channel: number, transfer: FileTransfer): () => void {
    this.#transfers.set(channel, transfer)
    return () => {
      if (this.#transfers.delete(channel)) connection.send({ type: 'cancel', channel })
    }
  }
}

async function request<K extends Op>(
  connection: GuestConnection,
  asked: Extract<GuestRequest, { op: K }>,
  signal: AbortSignal | undefined,
): Promise<GuestResults[K]> {
  return await withinDeadline((limit) => connection.request(asked, limit), { ms: ANSWER_MS, signal })
}

async function* releasing(bytes: AsyncIterable<Buffer>, release: () => void): AsyncGenerator<Buffer> {
  try {
    yield* bytes
  } finally {
    release()
  }
}
