const FORGET_MS = 20
/** Far less than a guest remembers. */
const FORGET_AT_ONCE = 32

/** Channels that the guest need not know any longer. There is no hurry: several go together. */
export class Forgetting {
  readonly #send: (channel: number) => void
  readonly #channels: number[] = []
  #soon: NodeJS.Timeout | undefined

  constructor(send: (channel: number) => void) {
    this.#send = send
  }

  add(channel: number): void {
    this.#channels.push(channel)
    if (this.#channels.length >= FORGET_AT_ONCE) this.#sendAll()
    else this.#soon ??= setTimeout(() => this.#sendAll(), FORGET_MS).unref()
  }

  close(): void {
    clearTimeout(this.#soon)
  }

  #sendAll(): void {
    clearTimeout(this.#soon)
    this.#soon = undefined
    for (const channel of this.#channels.splice(0)) this.#send(channel)
  }
}
