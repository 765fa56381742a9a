import { Socket } from 'node:net'
import { CHUNK_BYTES, type GuestErrorCode, WINDOW_BYTES } from '@airlock/contract/guest'

interface StdinEvents {
  /** The command took these bytes: the host may send more. */
  written(offset: number): void
  broken(code: GuestErrorCode, message: string): void
}

/** The open stdin of a command: bytes in order, acknowledged when the kernel has them. */
export class StdinPipe {
  readonly #socket: Socket
  readonly #events: StdinEvents
  #received = 0
  #written = 0
  #open = true

  constructor(fd: number, events: StdinEvents) {
    this.#events = events
    this.#socket = new Socket({ fd, readable: false, writable: true })
    this.#socket.on('error', () => this.#break('stdin_closed', 'nobody reads this stdin any more'))
  }

  get received(): number {
    return this.#received
  }

  write(offset: number, bytes: Buffer): void {
    if (!this.#open) return this.#events.broken('stdin_closed', 'this stdin is closed')
    const waiting = this.#received - this.#written + bytes.length
    if (offset !== this.#received || waiting > WINDOW_BYTES + CHUNK_BYTES)
      return this.#break('invalid_request', `stdin at ${this.#received} got bytes of ${offset}`)
    this.#received += bytes.length
    this.#socket.write(bytes, (error) => {
      if (error) return
      this.#written += bytes.length
      this.#events.written(this.#written)
    })
  }

  end(): void {
    this.#open = false
    this.#socket.end()
  }

  destroy(): void {
    this.#open = false
    this.#socket.destroy()
  }

  #break(code: GuestErrorCode, message: string): void {
    if (this.#socket.writableFinished) return
    this.destroy()
    this.#events.broken(code, message)
  }
}
