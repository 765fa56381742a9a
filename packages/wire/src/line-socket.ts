import type { Socket } from 'node:net'
import { LineSplitter } from './lines.ts'

interface Listener {
  onLine(line: string): void
  /** Called once: nothing comes or goes any more. */
  onClose(): void
  /** Longest time for the rest of a line; then the connection ends. Not counted while paused. Absent: no bound. */
  readonly lineMs?: number
}

/**
 * Lines over a socket. What is sent within one tick goes out as one write. A sender that must not outrun the other
 * side awaits `drained()`; a receiver that must not be outrun calls `pause()`.
 */
export class LineSocket {
  readonly #socket: Socket
  readonly #splitter = new LineSplitter()
  readonly #lineMs: number | undefined
  #unfinished: NodeJS.Timeout | undefined
  #out: string[] = []
  #isHurried = false

  constructor(socket: Socket, listener: Listener) {
    this.#socket = socket
    this.#lineMs = listener.lineMs
    socket.on('data', (chunk: Buffer) => {
      try {
        const lines = this.#splitter.push(chunk)
        if (lines.length > 0) this.#stopWaiting()
        this.#waitForRest()
        for (const line of lines) listener.onLine(line)
      } catch {
        // A line above the bound: there is no way to find the next one, so the connection ends.
        socket.destroy()
      }
    })
    // 'close' always follows, and says all there is to say.
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#stopWaiting()
      listener.onClose()
    })
  }

  #waitForRest(): void {
    if (this.#lineMs === undefined || !this.#splitter.isWithin || this.#socket.isPaused()) return
    this.#unfinished ??= setTimeout(() => this.#socket.destroy(), this.#lineMs)
  }

  #stopWaiting(): void {
    clearTimeout(this.#unfinished)
    this.#unfinished = undefined
  }

  send(line: string): void {
    if (this.#out.push(line) === 1) process.nextTick(() => this.#flush())
  }

  /** Sends what waits now and not at the end of the tick; once in a tick, so that many at once are still one write. */
  hurry(): void {
    if (this.#isHurried) return
    this.#isHurried = true
    process.nextTick(() => (this.#isHurried = false))
    this.#flush()
  }

  #flush(): void {
    if (this.#out.length === 0) return
    const text = `${this.#out.join('\n')}\n`
    this.#out = []
    if (!this.#socket.destroyed) this.#socket.write(text)
  }

  /** Resolves when the other side has taken enough to be sent more, or is gone. */
  async drained(): Promise<void> {
    this.#flush()
    if (this.#socket.destroyed || !this.#socket.writableNeedDrain) return
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#socket.off('drain', done).off('close', done)
        resolve()
      }
      this.#socket.on('drain', done).on('close', done)
    })
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  get isBehind(): boolean {
    return this.#socket.writableNeedDrain
  }

  pause(): void {
    this.#socket.pause()
    this.#stopWaiting()
  }

  resume(): void {
    this.#socket.resume()
    this.#waitForRest()
  }

  /** What was sent still goes out. */
  end(): void {
    this.#flush()
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }
}
