import { AirlockError, type FileOperation, type FindFilesRequest } from '@airlock/contract'
import type { GuestFound, GuestRequest, GuestResults } from '@airlock/contract/guest'
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

  /** Regular files by patterns. */
  async find(asked: FindFilesRequest, signal?: AbortSignal): Promise<GuestFound> {
    const connection = await this.#wire.connectionSoon(signal)
    return await request(connection, { op: 'file.find', ...asked }, signal)
  }

  /** `exactly`: a regular file by no link, at most so long; the guest and this side both see to that. */
  async read(
    path: string,
    signal?: AbortSignal,
    exactly?: { readonly maxBytes: number },
  ): Promise<{ size: number; bytes: AsyncIterable<Buffer> }> {
    const { connection, channel } = await this.#channel(signal)
    const download = new Download((offset) => connection.send({ type: 'ack', channel, offset }))
    const release = this.#open(connection, channel, download)
    try {
      const asked = { op: 'file.read', path, channel, ...(exactly ? { exactly } : {}) } as const
      const { size } = await request(connection, asked, signal)
      if (exactly && size > exactly.maxBytes) throw new AirlockError('artifact_too_large')
      // Whoever never reads must abort, or the file stays open until the guest's next connection.
      signal?.addEventListener('abort', release, { once: true })
      return { size, bytes: releasing(download.bytes(size, signal), release) }
    } catch (error) {
      release()
      throw error
    }
  }

  /** A directory as a tar. It throws unless all of it arrives. */
  async pack(path: string, signal?: AbortSignal): Promise<{ bytes: AsyncIterable<Buffer> }> {
    const { connection, channel } = await this.#channel(signal)
    const download = new Download((offset) => connection.send({ type: 'ack', channel, offset }))
    const release = this.#open(connection, channel, download)
    try {
      await request(connection, { op: 'file.pack', path, channel }, signal)
      signal?.addEventListener('abort', release, { once: true })
      return { bytes: releasing(download.untilEnd(signal), release) }
    } catch (error) {
      release()
      throw error
    }
  }

  /** Resolves with the number of bytes once the entries of a tar are below a directory. */
  async unpack(path: string, bytes: AsyncIterable<Buffer>, signal?: AbortSignal): Promise<number> {
    const { connection, channel } = await this.#channel(signal)
    return await this.#upload({ connection, asked: { op: 'file.unpack', path, channel } }, bytes, signal)
  }

  /** Resolves with the number of bytes once the guest has closed the file. */
  // oxlint-disable-next-line max-params -- where, how, what, until when: the order of every file call
  async write(
    path: string,
    mode: 'truncate' | 'append',
    bytes: AsyncIterable<Buffer>,
    signal?: AbortSignal,
  ): Promise<number> {
    const { connection, channel } = await this.#channel(signal)
    return await this.#upload({ connection, asked: { op: 'file.write', path, mode, channel } }, bytes, signal)
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

  async #channel(signal: AbortSignal | undefined): Promise<{ connection: GuestConnection; channel: number }> {
    return { connection: await this.#wire.connectionSoon(signal), channel: this.#nextChannel() }
  }

  async #upload(
    { connection, asked }: { readonly connection: GuestConnection; readonly asked: UploadRequest },
    bytes: AsyncIterable<Buffer>,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const { channel } = asked
    const upload = new Upload({
      put: (offset, chunk) => connection.sendData({ channel, offset, bytes: chunk }),
      end: () => connection.send({ type: 'eof', channel }),
    })
    const release = this.#open(connection, channel, upload)
    try {
      await request(connection, asked, signal)
      return await upload.send(bytes, signal)
    } finally {
      release()
    }
  }

  /** Makes a channel; the function that is returned gives it up, whatever state it is in. */
  #open(connection: GuestConnection, channel: number, transfer: FileTransfer): () => void {
    this.#transfers.set(channel, transfer)
    return () => {
      if (this.#transfers.delete(channel)) connection.send({ type: 'cancel', channel })
    }
  }
}

type UploadRequest = Extract<GuestRequest, { op: 'file.write' | 'file.unpack' }>

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
