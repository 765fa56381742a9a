import type { Socket } from 'node:net'

interface Seat {
  readonly gone: AbortController
  /** Requests that are being answered. */
  underWay: number
}

/**
 * Connections of one door. A newcomer takes the place of the connection that is idle for the longest time: one that says
 * nothing, or not yet a whole request, keeps nobody out. A connection that waits for an answer stays.
 */
export class Seats {
  readonly #most: number
  readonly #silentMs: number
  readonly #seats = new Map<Socket, Seat>()
  /** Those without a request under way; the longest idle first, as sets are. */
  readonly #idle = new Set<Socket>()

  constructor({ most, silentMs }: { readonly most: number; readonly silentMs: number }) {
    this.#most = most
    this.#silentMs = silentMs
  }

  /** Destroys the newcomer when all others are being answered. */
  take(socket: Socket): void {
    if (this.#seats.size >= this.#most) this.#evict(socket)
    if (socket.destroyed) return
    const seat = { gone: new AbortController(), underWay: 0 }
    this.#seats.set(socket, seat)
    this.#idle.add(socket)
    socket.once('close', () => {
      this.#leave(socket)
      seat.gone.abort()
    })
  }

  /** Keeps the connection while `work` answers a request of it; the signal aborts when the connection is gone. */
  async during<T>(socket: Socket, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const seat = this.#seats.get(socket)
    // Evicted since its request was read.
    if (!seat) return work(AbortSignal.abort())
    seat.underWay += 1
    this.#idle.delete(socket)
    socket.setTimeout(0)
    try {
      return await work(seat.gone.signal)
    } finally {
      seat.underWay -= 1
      if (seat.underWay === 0 && this.#seats.has(socket)) {
        this.#idle.add(socket)
        socket.setTimeout(this.#silentMs)
      }
    }
  }

  #evict(newcomer: Socket): void {
    const [oldest = newcomer] = this.#idle
    this.#leave(oldest)
    oldest.destroy()
  }

  #leave(socket: Socket): void {
    this.#seats.delete(socket)
    this.#idle.delete(socket)
  }
}
