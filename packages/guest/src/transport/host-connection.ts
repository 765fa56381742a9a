import { connect, type Socket } from 'node:net'
import {
  encodeData,
  encodeMessage,
  type Frame,
  FrameDecoder,
  type GuestCommandState,
  type GuestMessage,
  type GuestRequest,
  type HostMessage,
  PROTOCOL_VERSION,
} from '@airlock/contract/guest'
import { toGuestError } from '../failure.ts'
import type { DataFrame, Outbox } from '../outbox.ts'
import { parseHostMessage } from './parse-message.ts'

/** What the host already has, by channel. */
export type Attachment = ReadonlyMap<number, number>

export interface HostEvents {
  states(): readonly GuestCommandState[]
  attached(received: Attachment): void
  detached(): void
  request(request: GuestRequest): Promise<unknown>
  data(frame: DataFrame): void
  notice(message: Exclude<HostMessage, { type: 'attach' | 'request' | 'slept' }>): void
  slept(totalMs: number): void
}

const FIRST_DELAY_MS = 20
const LAST_DELAY_MS = 1000

/** Dials the host, and dials again for ever: the host may be killed and come back at any time. */
export class HostConnection implements Outbox {
  readonly #path: string
  #events: HostEvents | undefined
  #attached: Socket | undefined
  #delayMs = FIRST_DELAY_MS

  constructor(path: string) {
    this.#path = path
  }

  start(events: HostEvents): void {
    this.#events = events
    this.#dial(events)
  }

  send(message: GuestMessage): void {
    if (this.#attached) write(this.#attached, encodeMessage(message))
  }

  sendData(data: DataFrame): void {
    if (this.#attached) write(this.#attached, encodeData(data))
  }

  #dial(events: HostEvents): void {
    const socket = connect(this.#path)
    const decoder = new FrameDecoder()
    socket.on('connect', () => {
      socket.write(encodeMessage({ type: 'hello', protocol: PROTOCOL_VERSION, commands: events.states() }))
    })
    socket.on('data', (chunk) => {
      try {
        for (const frame of decoder.push(chunk)) this.#take(socket, frame)
      } catch {
        // Not frames: this connection is useless, the next one starts afresh.
        socket.destroy()
      }
    })
    socket.on('error', () => {
      // `close` follows, and dials again.
    })
    socket.on('close', () => this.#redial(socket, events))
  }

  #redial(socket: Socket, events: HostEvents): void {
    if (this.#attached === socket) {
      this.#attached = undefined
      events.detached()
    }
    setTimeout(() => this.#dial(events), this.#delayMs)
    this.#delayMs = Math.min(this.#delayMs * 2, LAST_DELAY_MS)
  }

  #take(socket: Socket, frame: Frame): void {
    if (frame.kind === 'data') {
      this.#events?.data(frame)
      return
    }
    const parsed = parseHostMessage(frame.json)
    if (parsed.kind === 'message') this.#handle(socket, parsed.message)
    else if (parsed.requestId !== undefined)
      this.#reply(socket, {
        type: 'failure',
        id: parsed.requestId,
        error: { code: 'invalid_request', message: 'the request does not fit the protocol' },
      })
  }

  #handle(socket: Socket, message: HostMessage): void {
    if (message.type === 'attach') {
      this.#attached = socket
      this.#delayMs = FIRST_DELAY_MS
      this.#events?.attached(new Map(message.received.map(({ channel, offset }) => [channel, offset])))
    } else if (message.type === 'request') void this.#answer(socket, message)
    else if (message.type === 'slept') this.#events?.slept(message.totalMs)
    else this.#events?.notice(message)
  }

  async #answer(socket: Socket, { id, request }: Extract<HostMessage, { type: 'request' }>): Promise<void> {
    try {
      this.#reply(socket, { type: 'result', id, result: await this.#events?.request(request) })
    } catch (error) {
      this.#reply(socket, { type: 'failure', id, error: toGuestError(error) })
    }
  }

  /** Answers go to the connection that asked: ids mean nothing on another. */
  #reply(socket: Socket, message: GuestMessage): void {
    if (socket.writable) write(socket, encodeMessage(message))
  }
}

/** What is said within one turn of the event loop goes out as one write, and wakes the host once. */
function write(socket: Socket, frame: Buffer): void {
  if (socket.writableCorked === 0) {
    socket.cork()
    setImmediate(() => socket.uncork())
  }
  socket.write(frame)
}
