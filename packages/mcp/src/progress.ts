/** Not more often than anybody looks, and often enough that no client takes silence for death. */
const LEAST_MS = 200
const HEARTBEAT_MS = 5_000
const MESSAGE_CHARS = 200

export type SendProgress = (progress: { readonly progress: number; readonly message: string }) => Promise<void>

/** Says how a call goes on, while it lasts. Its measure is the seconds that passed, for nobody knows how many there will be. */
export class Progress implements Disposable {
  readonly #send: SendProgress | undefined
  readonly #startedAt = performance.now()
  readonly #heartbeat: NodeJS.Timeout | undefined
  #lastAt = Number.NEGATIVE_INFINITY
  #message = 'working'
  #later: NodeJS.Timeout | undefined

  /** Without `send` nobody asked for it. */
  constructor(send: SendProgress | undefined) {
    this.#send = send
    if (send) this.#heartbeat = setInterval(() => this.#tell(), HEARTBEAT_MS)
    this.#heartbeat?.unref()
  }

  /** The last line of `text` is what is going on now. */
  say(text: string): void {
    if (!this.#send) return
    this.#message = lastLine(text) ?? this.#message
    const waitMs = LEAST_MS - (performance.now() - this.#lastAt)
    if (waitMs <= 0) this.#tell()
    else this.#later ??= setTimeout(() => this.#tell(), waitMs)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#heartbeat)
    clearTimeout(this.#later)
  }

  #tell(): void {
    clearTimeout(this.#later)
    this.#later = undefined
    this.#lastAt = performance.now()
    const progress = (this.#lastAt - this.#startedAt) / 1000
    // Who does not hear it has gone, and the call learns that elsewhere.
    void this.#send?.({ progress, message: this.#message }).catch(() => undefined)
  }
}

function lastLine(text: string): string | undefined {
  const lines = text.slice(-4 * MESSAGE_CHARS).split(/[\r\n]+/)
  // oxlint-disable-next-line no-control-regex -- what steers a terminal must not reach a status line
  const clean = lines.map((line) => line.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '').trim())
  return clean.findLast((line) => line !== '')?.slice(0, MESSAGE_CHARS)
}
