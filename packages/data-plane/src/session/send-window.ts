import { AirlockError } from '@airlock/contract'
import { CHUNK_BYTES, WINDOW_BYTES } from '@airlock/contract/guest'
import { ANSWER_MS, withinDeadline } from './deadline.ts'
import { Notice } from './notice.ts'

interface SendWindowOptions {
  /** A channel that an earlier process used is at an unknown offset, until the guest acknowledges something. */
  readonly start: 'fresh' | 'unknown'
  /** How long the guest may leave the window full: stdin waits as long as its command, a file does not. */
  readonly patienceMs: number | undefined
  put(offset: number, bytes: Buffer): void
}

/** Whoever sends over a lost connection cannot know what arrived, so a turn ends with it. */
export type Turn = number

/** Bytes towards the guest on one channel: never more than a window of them is unacknowledged. */
export class SendWindow {
  readonly #options: SendWindowOptions
  readonly #changed = new Notice()
  #sent: number | undefined
  #acknowledged = 0
  #turn: Turn = 0
  #failure: AirlockError | undefined

  constructor(options: SendWindowOptions) {
    this.#options = options
    this.#sent = options.start === 'fresh' ? 0 : undefined
  }

  acknowledge(offset: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, offset)
    this.#sent ??= offset
    this.#changed.notify()
  }

  /** The connection is lost. The channel goes on once the guest says where it is. */
  interrupt(): void {
    this.#turn++
    this.#sent = undefined
    this.#changed.notify()
  }

  /** For good. */
  fail(error: AirlockError): void {
    this.#failure ??= error
    this.#changed.notify()
  }

  /** Resolves when the offset of the channel is known. */
  async begin(signal?: AbortSignal): Promise<{ readonly turn: Turn; readonly offset: number }> {
    for (;;) {
      if (this.#failure) throw this.#failure
      if (this.#sent !== undefined) return { turn: this.#turn, offset: this.#sent }
      await withinDeadline((limit) => this.#changed.wait(limit), { ms: ANSWER_MS, signal })
    }
  }

  async send(turn: Turn, bytes: Buffer, signal?: AbortSignal): Promise<void> {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      const piece = bytes.subarray(at, at + CHUNK_BYTES)
      await this.#until(turn, () => this.#unacknowledged() + piece.length <= WINDOW_BYTES, signal)
      const offset = this.#sent ?? 0
      this.#sent = offset + piece.length
      this.#options.put(offset, piece)
    }
  }

  /** Resolves when the guest has all that was sent. */
  async drain(turn: Turn, signal?: AbortSignal): Promise<void> {
    await this.#until(turn, () => this.#unacknowledged() === 0, signal)
  }

  #unacknowledged(): number {
    return (this.#sent ?? 0) - this.#acknowledged
  }

  async #until(turn: Turn, holds: () => boolean, signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      if (this.#failure) throw this.#failure
      if (turn !== this.#turn) throw new AirlockError('guest_lost', 'the connection to the sandbox was lost')
      if (holds()) return
      await withinDeadline((limit) => this.#changed.wait(limit), { ms: this.#options.patienceMs, signal })
    }
  }
}
