import { constants } from 'node:os'
import { Exit } from '../failure.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * What a person or a system does to stop us, while it lasts. The first Ctrl-C is for the command; whatever comes after
 * it, or is no Ctrl-C, is for us: `stopped` aborts, and the exit code says by which signal.
 */
export class Interrupts implements Disposable {
  readonly #ask = new AbortController()
  readonly #stop = new AbortController()
  readonly #handlers = SIGNALS.map((name) => ({ name, handler: (): void => this.#on(name) }))
  #isAsked = false
  #onAsked: (() => void) | undefined
  #exitCode = 0

  constructor() {
    for (const { name, handler } of this.#handlers) process.on(name, handler)
    process.stdout.on('error', this.#onBrokenPipe)
  }

  /** Aborts at whatever comes first: for what nobody would want to go on after a Ctrl-C. */
  get asked(): AbortSignal {
    return this.#ask.signal
  }

  /** Aborts when it is time to give up. */
  get stopped(): AbortSignal {
    return this.#stop.signal
  }

  /** What to exit with once stopped. */
  get exitCode(): number {
    return this.#exitCode
  }

  /** For a moment at which nothing has begun that could be asked: throws when we were told to stop. */
  throwIfAsked(): void {
    if (this.#isAsked) this.#stopWith('SIGINT')
    if (this.#stop.signal.aborted) throw new Exit(this.#exitCode)
  }

  /** Called at the first Ctrl-C, also when that was before now. */
  onAsked(handler: () => void): void {
    this.#onAsked = handler
    if (this.#isAsked) handler()
  }

  [Symbol.dispose](): void {
    for (const { name, handler } of this.#handlers) process.off(name, handler)
    process.stdout.off('error', this.#onBrokenPipe)
  }

  #on(name: (typeof SIGNALS)[number]): void {
    if (name === 'SIGINT' && !this.#isAsked) {
      this.#isAsked = true
      this.#ask.abort()
      this.#onAsked?.()
    } else this.#stopWith(name)
  }

  /** Whoever read our output has gone, as with `| head`. */
  readonly #onBrokenPipe = (): void => this.#stopWith('SIGPIPE')

  #stopWith(name: NodeJS.Signals): void {
    if (this.#stop.signal.aborted) return
    this.#exitCode = 128 + constants.signals[name]
    this.#ask.abort()
    this.#stop.abort()
  }
}
