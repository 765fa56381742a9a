import { PassThrough } from 'node:stream'
import type { ReadStream } from 'node:tty'

const CTRL_C = 0x03
/** More than anybody types ahead. */
const HELD_BYTES = 64 * 1024

/**
 * Stands between the keyboard and the line editor. While it is closed, keys wait for the next prompt instead of running
 * into the output, and Ctrl-C is told at once. The terminal stays in raw mode: no signal reaches who started us.
 */
export class KeyGate extends PassThrough implements Disposable {
  readonly #terminal: ReadStream
  #held: Buffer[] = []
  #heldBytes = 0
  #onCtrlC: (() => void) | undefined

  constructor(terminal: ReadStream) {
    super()
    this.#terminal = terminal
    terminal.on('data', this.#take)
    terminal.once('end', this.#finish)
    this.setRawMode(true)
  }

  /** The line editor asks for it when it is suspended. */
  setRawMode(mode: boolean): this {
    this.#terminal.setRawMode(mode)
    return this
  }

  close(onCtrlC: () => void): void {
    this.#onCtrlC = onCtrlC
  }

  open(): void {
    this.#onCtrlC = undefined
    const held = this.#held
    this.#held = []
    this.#heldBytes = 0
    for (const bytes of held) this.write(bytes)
  }

  [Symbol.dispose](): void {
    this.#terminal.off('data', this.#take)
    this.#terminal.off('end', this.#finish)
    this.setRawMode(false)
    this.#terminal.pause()
  }

  readonly #take = (bytes: Buffer): void => {
    const told = this.#onCtrlC
    if (!told) return void this.write(bytes)
    const asked = bytes.filter((byte) => byte === CTRL_C).length
    if (asked > 0) {
      this.#held = []
      this.#heldBytes = 0
      for (let i = 0; i < asked; i++) told()
    } else if (this.#heldBytes + bytes.length <= HELD_BYTES) {
      this.#held.push(bytes)
      this.#heldBytes += bytes.length
    }
  }

  readonly #finish = (): void => void this.end()
}
