import { connect } from 'node:net'
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
import { Wire } from './wire.ts'

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
/** Nobody needs their answers before whatever is said next. */
const UNHURRIED: ReadonlySet<GuestRequest['op']> = new Set(['step', 'forget'])

/** Dials the host, and dials again for ever: the host may be killed and come back at any time. */
export class HostConnection implements Outbox {
  readonly #path: string
  #events: HostEvents | undefined
  #attached: Wire | undefined
  #delayMs = FIRST_DELAY_MS

  constructor(path: string) {
    this.#path = path
  }

  start(events: HostEvents): void {
    this.#events = events
    this.#dial(events)
  }

  send(message: GuestMessage): void {
    this.#attached?.write(encodeMessage(message))
  }

  sendData(data: DataFrame): void {
    this.#attached?.write(encodeData(data))
  }

  #dial(events: HostEvents): void {
    const socket = connect(this.#path)
    const wire = new Wire(socket)
    const decoder = new FrameDecoder()
    socket.on('connect', () => {
      socket.write(encodeMessage({ type: 'hello', protocol: PROTOCOL_VERSION, commands: events.states() }))
    })
    socket.on('data', (chunk) => {
      try {
        for (const frame of decoder.push(chunk)) this.#take(wire, frame)
      } catch {
        // Not frames: this connection is useless, the next one starts afresh.
        socket.destroy()
      }
    })
    socket.on('error', () => {
      // `close` follows, and dials again.
    })
    socket.on('close', () => this.#redial(wire, events))
  }

  #redial(wire: Wire, events: HostEvents): void {
    if (this.#attached === wire) {
      this.#attached = undefined
      events.detached()
    }
    setTimeout(() => this.#dial(events), this.#delayMs)
    this.#delayMs = Math.min(this.#delayMs * 2, LAST_DELAY_MS)
  }

  #take(wire: Wire, frame: Frame): void {
    if (frame.kind === 'data') {
      this.#events?.data(frame)
      return
    }
    const parsed = parseHostMessage(frame.json)
    if (parsed.kind === 'message') this.#handle(wire, parsed.message)
    else if (parsed.requestId !== undefined)
      reply(wire, {
        type: 'failure',
        id: parsed.requestId,
        error: { code: 'invalid_request', message: 'the request does not fit the protocol' },
      })
  }

  #handle(wire: Wire, message: HostMessage): void {
    if (message.type === 'attach') {
      this.#attached = wire
      this.#delayMs = FIRST_DELAY_MS
      this.#events?.attached(new Map(message.received.map(({ channel, offset }) => [channel, offset])))
    } else if (message.type === 'request') void this.#answer(wire, message)
    else if (message.type === 'slept') this.#events?.slept(message.totalMs)
    else this.#events?.notice(message)
  }

  async #answer(wire: Wire, { id, request }: Extract<HostMessage, { type: 'request' }>): Promise<void> {
    try {
      const message: GuestMessage = { type: 'result', id, result: await this.#events?.request(request) }
      if (UNHURRIED.has(request.op)) wire.writeSoon(encodeMessage(message))
      else reply(wire, message)
    } catch (error) {
      reply(wire, { type: 'failure', id, error: toGuestError(error) })
    }
  }
}

/** Answers go to the connection that asked: ids mean nothing on another. */
function reply(wire: Wire, message: GuestMessage): void {
  wire.write(encodeMessage(message))
}
