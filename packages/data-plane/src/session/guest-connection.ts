import type { Duplex } from 'node:stream'
import { AirlockError, guestMessage, guestResults } from '@airlock/contract'
import {
  encodeData,
  encodeMessage,
  type Frame,
  FrameDecoder,
  FrameError,
  type GuestCommandState,
  type GuestMessage,
  type GuestRequest,
  type GuestResults,
  type HostMessage,
  PROTOCOL_VERSION,
} from '@airlock/contract/guest'

export type Op = GuestRequest['op']
export type DataFrame = Extract<Frame, { kind: 'data' }>
export type ChannelMessage = Exclude<GuestMessage, { type: 'hello' | 'result' | 'failure' }>

export interface ConnectionEvents {
  /** The guest is there; answers what we have of each command. */
  hello(commands: readonly GuestCommandState[]): Promise<readonly { channel: number; offset: number }[]>
  /** `attach` was sent. */
  attached(commands: readonly GuestCommandState[]): void
  message(message: ChannelMessage): Promise<void>
  data(frame: DataFrame): void
  /** Stores what `data` was given and acknowledges it; called before every message and when nothing more is at hand. */
  flush(): Promise<void>
}

interface Pending {
  readonly op: Op
  /** With what fits the schema of `op`. */
  resolve(result: unknown): void
  reject(error: AirlockError): void
}

const PENDING_LIMIT = 256
/** How the kernel says that whoever was at the other end is gone. */
const GONE: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE'])

/**
 * One connection of a guest. Nothing that it says is believed before it fits the schemas; the first frame that does not
 * fit ends the connection. Frames are handled strictly in turn, so a guest that floods us only fills its own socket.
 */
export class GuestConnection {
  readonly #socket: Duplex
  readonly #events: ConnectionEvents
  readonly #pending = new Map<number, Pending>()
  #nextId = 1
  #isGreeted = false

  constructor(socket: Duplex, events: ConnectionEvents) {
    this.#socket = socket
    this.#events = events
    socket.on('error', () => {
      // The reader below sees it too.
    })
  }

  /** Resolves with what ended the connection: undefined when the guest just went. */
  async run(): Promise<unknown> {
    const decoder = new FrameDecoder()
    const chunks: AsyncIterable<Buffer> = this.#socket
    try {
      for await (const chunk of chunks) {
        for (const frame of decoder.push(chunk)) await this.#take(frame)
        await this.#events.flush()
      }
      return undefined
    } catch (error) {
      // One that died before it had read everything just went, too.
      return error instanceof Error && 'code' in error && GONE.has(error.code) ? undefined : error
    } finally {
      this.destroy()
      const lost = new AirlockError('guest_lost', 'the connection to the sandbox was lost')
      for (const pending of this.#pending.values()) pending.reject(lost)
      this.#pending.clear()
    }
  }

  destroy(): void {
    this.#socket.destroy()
  }

  send(message: HostMessage): void {
    this.#write(encodeMessage(message))
  }

  sendData(data: { readonly channel: number; readonly offset: number; readonly bytes: Buffer }): void {
    this.#write(encodeData({ stream: 0, ...data }))
  }

  async request<K extends Op>(
    request: Extract<GuestRequest, { op: K }>,
    signal: AbortSignal | undefined,
  ): Promise<GuestResults[K]> {
    signal?.throwIfAborted()
    if (!this.#socket.writable) throw new AirlockError('guest_lost', 'the connection to the sandbox was lost')
    if (this.#pending.size >= PENDING_LIMIT) throw new AirlockError('too_many_commands', 'too many requests at once')
    const id = this.#nextId++
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const abort = () => reject(signal?.reason)
    this.#pending.set(id, { op: request.op, resolve, reject })
    signal?.addEventListener('abort', abort)
    try {
      this.send({ type: 'request', id, request })
      return (await promise) as GuestResults[K]
    } finally {
      signal?.removeEventListener('abort', abort)
      this.#pending.delete(id)
    }
  }

  /** What is said within one tick goes out as one write, and wakes the guest once. */
  #write(frame: Buffer): void {
    if (!this.#socket.writable) return
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork()
      process.nextTick(() => this.#socket.uncork())
    }
    this.#socket.write(frame)
  }

  async #take(frame: Frame): Promise<void> {
    if (frame.kind === 'data') {
      if (!this.#isGreeted) throw new FrameError('data before hello')
      this.#events.data(frame)
      return
    }
    await this.#events.flush()
    const message: GuestMessage = guestMessage.parse(frame.json)
    if ((message.type === 'hello') === this.#isGreeted) throw new FrameError(`unexpected ${message.type}`)
    if (message.type === 'hello') await this.#greet(message)
    else if (message.type === 'result' || message.type === 'failure') this.#settle(message)
    else await this.#events.message(message)
  }

  async #greet(hello: Extract<GuestMessage, { type: 'hello' }>): Promise<void> {
    if (hello.protocol !== PROTOCOL_VERSION) throw new FrameError(`protocol ${hello.protocol}`)
    this.#isGreeted = true
    const received = await this.#events.hello(hello.commands)
    this.send({ type: 'attach', received })
    this.#events.attached(hello.commands)
  }

  /** An answer that nobody waits for any more is dropped. */
  #settle(message: Extract<GuestMessage, { type: 'result' | 'failure' }>): void {
    const pending = this.#pending.get(message.id)
    if (!pending) return
    if (message.type === 'failure') {
      pending.reject(new AirlockError(message.error.code, message.error.message))
      return
    }
    const parsed = guestResults[pending.op].safeParse(message.result)
    if (parsed.success) pending.resolve(parsed.data)
    else {
      pending.reject(new AirlockError('internal', 'the sandbox gave an impossible answer', { cause: parsed.error }))
      throw parsed.error
    }
  }
}
