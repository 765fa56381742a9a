import type { Duplex } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { AirlockError, isAirlockError } from '@airlock/contract'
import type { GuestCommandState, GuestRequest, GuestResults } from '@airlock/contract/guest'
import type { Log } from '@airlock/std'
import { ANSWER_MS, withinDeadline } from './deadline.ts'
import { type ConnectionEvents, GuestConnection, type Op } from './guest-connection.ts'
import type { GuestListener } from './guest-listener.ts'
import { Notice } from './notice.ts'

/** How long a guest that went away is given to come back before a request fails. */
const REATTACH_MS = 2000

export interface WireOptions extends Omit<ConnectionEvents, 'attached'> {
  readonly sandbox: string
  readonly listener: GuestListener
  readonly log: Log
  /** The guest is there, and knows what we have. */
  attached(connection: GuestConnection, commands: readonly GuestCommandState[]): void
  /** It is not there any more; it may come back. */
  detached(lost: AirlockError): void
}

/** The connections of one guest: one lives, a new one replaces it. */
export class GuestWire {
  readonly #options: WireOptions
  readonly #attachment = new Notice()
  #attached: GuestConnection | undefined
  #latest: { readonly connection: GuestConnection; readonly done: Promise<void> } | undefined
  #closed: AirlockError | undefined

  constructor(options: WireOptions) {
    this.#options = options
  }

  async listen(): Promise<void> {
    await this.#options.listener.listen((socket) => this.#accept(socket))
  }

  /** The living connection, if there is one now. */
  get attached(): GuestConnection | undefined {
    return this.#attached
  }

  /** The living connection, however long that takes. */
  async connection(signal: AbortSignal | undefined): Promise<GuestConnection> {
    for (;;) {
      if (this.#closed) throw this.#closed
      if (this.#attached) return this.#attached
      await this.#attachment.wait(signal)
    }
  }

  /** The living connection; a guest that went away gets a moment to come back. */
  async connectionSoon(signal?: AbortSignal): Promise<GuestConnection> {
    try {
      return await withinDeadline((limit) => this.connection(limit), { ms: REATTACH_MS, signal })
    } catch (error) {
      if (!isAirlockError(error) || error.code !== 'timeout') throw error
      throw new AirlockError('guest_lost', 'the sandbox does not answer', { cause: error })
    }
  }

  /** Asks, and where asking twice is harmless asks again over a new connection when the old one was lost. */
  async ask<K extends Op>(request: Extract<GuestRequest, { op: K }>, ms = ANSWER_MS): Promise<GuestResults[K]> {
    const ask = async (limit: AbortSignal | undefined) => {
      for (;;) {
        const connection = this.#attached ?? (await this.connectionSoon(limit))
        try {
          return await connection.request(request, limit)
        } catch (error) {
          if (!isAirlockError(error) || error.code !== 'guest_lost' || !REPEATABLE.has(request.op)) throw error
          // The end of a connection is noticed in a later turn of the event loop.
          await setImmediate()
        }
      }
    }
    return await withinDeadline(ask, { ms })
  }

  /** Lets go of the guest, which lives on. Whoever waits for it is told the first `reason`. */
  async close(reason: AirlockError): Promise<AirlockError> {
    this.#closed ??= reason
    this.#latest?.connection.destroy()
    await this.#options.listener.close()
    await this.#latest?.done
    this.#attachment.notify()
    return this.#closed
  }

  #accept(socket: Duplex): void {
    const { hello, message, data, flush } = this.#options
    const before = this.#latest
    before?.connection.destroy()
    const connection: GuestConnection = new GuestConnection(socket, {
      hello,
      message,
      data,
      flush,
      attached: (commands) => {
        this.#attached = connection
        this.#options.attached(connection, commands)
        this.#attachment.notify()
      },
    })
    this.#latest = { connection, done: this.#serve(connection, before?.done) }
  }

  /** The one before must have stored what it took, for the guest is told what we have. */
  async #serve(connection: GuestConnection, before: Promise<void> | undefined): Promise<void> {
    const { sandbox, log } = this.#options
    await before
    const fault = this.#closed ? undefined : await connection.run()
    connection.destroy()
    if (fault !== undefined && !this.#closed) log.warn('the connection of a guest ended', { sandbox, fault })
    if (this.#attached !== connection) return
    this.#attached = undefined
    this.#options.detached(new AirlockError('guest_lost', 'the connection to the sandbox was lost'))
  }
}

/** A second time does no more than the first. */
const REPEATABLE: ReadonlySet<Op> = new Set<Op>([
  'ping',
  'token',
  'run',
  'step',
  'forget',
  'session.open',
  'session.list',
  'session.close',
  'file.stat',
  'file.list',
])
