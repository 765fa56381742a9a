import { AirlockError } from '@airlock/contract'
import { CHUNK_BYTES, FrameError, type GuestMessage, WINDOW_BYTES } from '@airlock/contract/guest'
import { ANSWER_MS, withinDeadline } from './deadline.ts'
import type { ChannelMessage, DataFrame } from './guest-connection.ts'
import { Notice } from './notice.ts'
import { SendWindow } from './send-window.ts'

/** A file on its way, on a channel of its own. Throws `FrameError` when the guest says what it must not. */
export interface FileTransfer {
  data(frame: DataFrame): void
  message(message: ChannelMessage): void
  fail(error: AirlockError): void
}

/** Bytes out of the sandbox: the guest is acknowledged when the reader took them, so at most a window waits here. */
export class Download implements FileTransfer {
  readonly #acknowledge: (offset: number) => void
  readonly #changed = new Notice()
  readonly #chunks: Buffer[] = []
  #received = 0
  #taken = 0
  #end: Extract<GuestMessage, { type: 'eof' }> | undefined
  #failure: AirlockError | undefined

  constructor(acknowledge: (offset: number) => void) {
    this.#acknowledge = acknowledge
  }

  data(frame: DataFrame): void {
    const waiting = this.#received - this.#taken + frame.bytes.length
    if (frame.offset !== this.#received || waiting > WINDOW_BYTES + CHUNK_BYTES || frame.bytes.length === 0)
      throw new FrameError('file bytes out of order or beyond the window')
    this.#chunks.push(frame.bytes)
    this.#received += frame.bytes.length
    this.#changed.notify()
  }

  message(message: ChannelMessage): void {
    if (message.type === 'eof') this.#end = message
    else if (message.type === 'broken') this.fail(new AirlockError(message.error.code, message.error.message))
    else throw new FrameError(`${message.type} of a file that is read`)
    this.#changed.notify()
  }

  fail(error: AirlockError): void {
    this.#failure ??= error
    this.#changed.notify()
  }

  /** Exactly `size` bytes, or it throws. */
  async *bytes(size: number, signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
    while (this.#taken < size) {
      const chunk = this.#chunks.shift()
      if (chunk) {
        this.#taken += chunk.length
        if (this.#taken > size) throw changedMeanwhile()
        this.#acknowledge(this.#taken)
        yield chunk
      } else {
        if (this.#failure) throw this.#failure
        if (this.#end) throw changedMeanwhile()
        await withinDeadline((limit) => this.#changed.wait(limit), { ms: ANSWER_MS, signal })
      }
    }
  }

  /** Everything until the guest says that this was all, or it throws. */
  async *untilEnd(signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk) {
        this.#taken += chunk.length
        this.#acknowledge(this.#taken)
        yield chunk
      } else if (this.#failure) throw this.#failure
      else if (this.#end) {
        if (this.#end.bytes !== this.#taken) throw changedMeanwhile()
        return
      } else await withinDeadline((limit) => this.#changed.wait(limit), { ms: ANSWER_MS, signal })
    }
  }
}

function changedMeanwhile(): AirlockError {
  return new AirlockError('internal', 'the file changed while it was read')
}

interface UploadOptions {
  put(offset: number, bytes: Buffer): void
  end(): void
}

/** Bytes into the sandbox. */
export class Upload implements FileTransfer {
  readonly #end: () => void
  readonly #window: SendWindow
  readonly #changed = new Notice()
  #written: number | undefined
  #failure: AirlockError | undefined

  constructor(options: UploadOptions) {
    this.#end = () => options.end()
    const put = (offset: number, bytes: Buffer) => options.put(offset, bytes)
    this.#window = new SendWindow({ start: 'fresh', patienceMs: ANSWER_MS, put })
  }

  data(): void {
    throw new FrameError('bytes of a file that is written')
  }

  message(message: ChannelMessage): void {
    if (message.type === 'ack') this.#window.acknowledge(message.offset)
    else if (message.type === 'broken') this.fail(new AirlockError(message.error.code, message.error.message))
    else if (message.type === 'written') this.#written = message.bytes
    else throw new FrameError(`${message.type} of a file that is written`)
    this.#changed.notify()
  }

  fail(error: AirlockError): void {
    this.#failure ??= error
    this.#window.fail(error)
    this.#changed.notify()
  }

  /** Resolves with the number of bytes once the guest has closed the file. */
  async send(bytes: AsyncIterable<Buffer>, signal: AbortSignal | undefined): Promise<number> {
    const { turn } = await this.#window.begin(signal)
    let total = 0
    for await (const chunk of bytes) {
      await this.#window.send(turn, chunk, signal)
      total += chunk.length
    }
    this.#end()
    while (this.#written === undefined) {
      if (this.#failure) throw this.#failure
      await withinDeadline((limit) => this.#changed.wait(limit), { ms: ANSWER_MS, signal })
    }
    if (this.#written !== total) throw new AirlockError('internal', 'the sandbox wrote less than it was given')
    return total
  }
}
