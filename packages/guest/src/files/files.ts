import type { GuestRequest, HostMessage } from '@airlock/contract/guest'
import { asUser, type User } from '../as-user.ts'
import { GuestFailure } from '../failure.ts'
import type { DataFrame, Outbox } from '../outbox.ts'
import { resolveFile } from '../path.ts'
import { ArchiveReading } from './archive-reading.ts'
import { ArchiveWriting } from './archive-writing.ts'
import { FileChanges } from './changes.ts'
import { list, stat } from './entries.ts'
import { FileFinder } from './find.ts'
import { openExactly, openForReading, openForWriting } from './open.ts'
import { FileReading } from './reading.ts'
import type { Transfer, TransferEvents } from './transfer.ts'
import { throwUnlessDirectory } from './tree-reader.ts'
import { TreeWriter } from './tree-writer.ts'
import { FileWriting } from './writing.ts'

type FileRequest = Extract<GuestRequest, { readonly op: `file.${string}` }>

interface FilesOptions {
  readonly user: User
  readonly outbox: Outbox
  /** Runs a program with the rights of user code; rejects when it fails. */
  runAsUser(argv: readonly string[]): Promise<void>
}

const TRANSFER_LIMIT = 64

/** Everything that callers do with files, with the rights of user code. */
export class Files {
  readonly #user: User
  readonly #outbox: Outbox
  readonly #changes: FileChanges
  readonly #transfers = new Map<number, Transfer>()

  constructor(options: FilesOptions) {
    this.#user = options.user
    this.#outbox = options.outbox
    this.#changes = new FileChanges(options.user, (argv) => options.runAsUser(argv))
  }

  // oxlint-disable-next-line complexity -- one case for each request
  async request(request: FileRequest): Promise<unknown> {
    switch (request.op) {
      case 'file.read':
        return this.#read(request)
      case 'file.find':
        return await new FileFinder(this.#user, request).find()
      case 'file.write':
        return this.#write(request)
      case 'file.pack':
        return this.#pack(request.channel, resolveFile(request.path))
      case 'file.unpack':
        return this.#unpack(request.channel, resolveFile(request.path))
      case 'file.stat':
        return asUser(this.#user, () => stat(resolveFile(request.path)))
      case 'file.list':
        return asUser(this.#user, () => list(resolveFile(request.path), request.limit))
      case 'file.mkdir':
        return this.#changes.mkdir(resolveFile(request.path), request.parents ? 'parents' : 'single')
      case 'file.move':
        return await this.#changes.move(resolveFile(request.from), resolveFile(request.to))
      case 'file.remove':
        return await this.#changes.remove(resolveFile(request.path), request.recursive ? 'tree' : 'single')
    }
  }

  /** A channel without transfer is one that ended before the host knew. */
  data(frame: DataFrame): void {
    this.#transfers.get(frame.channel)?.data(frame.offset, frame.bytes)
  }

  notice(message: Exclude<HostMessage, { type: 'attach' | 'request' | 'slept' }>): void {
    const transfer = this.#transfers.get(message.channel)
    if (message.type === 'ack') transfer?.acknowledge(message.offset)
    else if (message.type === 'eof') transfer?.end()
    else transfer?.cancel()
  }

  /** The host takes a transfer that was cut for failed, so nobody would end it. */
  detached(): void {
    for (const transfer of this.#transfers.values()) transfer.cancel()
  }

  #read({ channel, path: asked, exactly }: Extract<FileRequest, { op: 'file.read' }>): { size: number } {
    this.#throwOnBusy(channel)
    const path = resolveFile(asked)
    const open = () => (exactly ? openExactly(path, exactly.maxBytes) : openForReading(path))
    const opened = asUser(this.#user, open)
    this.#transfers.set(channel, new FileReading(opened, this.#eventsOf(channel)))
    return { size: opened.size }
  }

  #write(request: Extract<FileRequest, { op: 'file.write' }>): Record<string, never> {
    this.#throwOnBusy(request.channel)
    const fd = asUser(this.#user, () => openForWriting(resolveFile(request.path), request.mode))
    this.#transfers.set(request.channel, new FileWriting(fd, this.#eventsOf(request.channel)))
    return {}
  }

  #pack(channel: number, path: Buffer): Record<string, never> {
    this.#throwOnBusy(channel)
    asUser(this.#user, () => throwUnlessDirectory(path))
    this.#transfers.set(channel, new ArchiveReading({ path, user: this.#user }, this.#eventsOf(channel)))
    return {}
  }

  #unpack(channel: number, path: Buffer): Record<string, never> {
    this.#throwOnBusy(channel)
    const tree = new TreeWriter(path, this.#user)
    this.#transfers.set(channel, new ArchiveWriting(tree, this.#eventsOf(channel)))
    return {}
  }

  #throwOnBusy(channel: number): void {
    if (this.#transfers.has(channel)) throw new GuestFailure('invalid_request', 'the channel is in use')
    if (this.#transfers.size >= TRANSFER_LIMIT) throw new GuestFailure('too_many_commands', 'too many file transfers')
  }

  #eventsOf(channel: number): TransferEvents {
    return {
      data: (offset, bytes) => this.#outbox.sendData({ channel, stream: 0, offset, bytes }),
      acknowledge: (offset) => this.#outbox.send({ type: 'ack', channel, offset }),
      done: (type, bytes) => {
        this.#transfers.delete(channel)
        this.#outbox.send({ type, channel, bytes })
      },
      broken: (code, message) => {
        this.#transfers.delete(channel)
        this.#outbox.send({ type: 'broken', channel, error: { code, message } })
      },
      cancelled: () => this.#transfers.delete(channel),
    }
  }
}
