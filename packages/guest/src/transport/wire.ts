import type { Socket } from 'node:net'

/** What need not be said at once waits this long for company. */
const SOON_MS = 2

/** Our end of a connection: what is said within one turn of the event loop goes out as one write, and wakes the host once. */
export class Wire {
  readonly #socket: Socket
  #isDue = false
  #soon: NodeJS.Timeout | undefined

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** In this turn. What the other side can no longer hear is dropped. */
  write(frame: Buffer): void {
    if (!this.#hold(frame) || this.#isDue) return
    this.#isDue = true
    setImmediate(() => this.#letGo())
  }

  /** With whatever is written next, and soon at the latest. */
  writeSoon(frame: Buffer): void {
    if (this.#hold(frame) && !this.#isDue) this.#soon ??= setTimeout(() => this.#letGo(), SOON_MS)
  }

  #hold(frame: Buffer): boolean {
    if (!this.#socket.writable) return false
    if (this.#socket.writableCorked === 0) this.#socket.cork()
    this.#socket.write(frame)
    return true
  }

  #letGo(): void {
    clearTimeout(this.#soon)
    this.#soon = undefined
    this.#isDue = false
    this.#socket.uncork()
  }
}
