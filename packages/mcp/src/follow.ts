import { AirlockError, isErrorCode } from '@airlock/contract'
import { sleep } from '@airlock/std'

/** How long something that was called off gets to begin, so that it can be stopped, and then to stop. */
export const STOP_MS = 10_000

interface Told {
  readonly code: string
  readonly message: string
  readonly hint: string
}
type StreamEvent = { readonly event: string } | { readonly event: 'error'; readonly error: Told }

interface Followed<E extends StreamEvent> {
  /** Opens the stream; its signal ends the listening only. */
  readonly open: (signal: AbortSignal) => AsyncIterable<E>
  readonly onEvent: (event: E) => void
  /** After the first event: how to stop what runs. */
  readonly stop: () => Promise<unknown>
  /** Aborts when the caller no longer wants it. */
  readonly signal: AbortSignal
}

/**
 * Follows something that runs in a sandbox to its end. When the caller calls it off, it is stopped where it runs, also
 * when it had not begun yet; only then does the listening end, and `signal.reason` is thrown.
 */
export async function follow<E extends StreamEvent>(followed: Followed<E>): Promise<void> {
  const { signal } = followed
  signal.throwIfAborted()
  const listening = new AbortController()
  const stopper = new Stopper(followed.stop, listening)
  const onAbort = (): void => stopper.callOff()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    for await (const event of followed.open(listening.signal)) {
      if (isError(event)) throw toError(event.error)
      stopper.begun()
      followed.onEvent(event)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
    await stopper.done()
  }
  signal.throwIfAborted()
}

class Stopper {
  readonly #stop: () => Promise<unknown>
  readonly #listening: AbortController
  #hasBegun = false
  #isCalledOff = false
  #stopping: Promise<unknown> | undefined
  #giveUp: NodeJS.Timeout | undefined

  constructor(stop: () => Promise<unknown>, listening: AbortController) {
    this.#stop = stop
    this.#listening = listening
  }

  begun(): void {
    this.#hasBegun = true
    if (this.#isCalledOff) this.#run()
  }

  callOff(): void {
    this.#isCalledOff = true
    this.#giveUp = setTimeout(() => this.#listening.abort(), STOP_MS)
    if (this.#hasBegun) this.#run()
  }

  async done(): Promise<void> {
    clearTimeout(this.#giveUp)
    await this.#stopping
  }

  #run(): void {
    // What cannot be stopped has ended by itself, or ends by its timeout; the listening ends here either way.
    this.#stopping ??= Promise.race([this.#stop(), sleep(STOP_MS, this.#listening.signal)])
      .catch(() => undefined)
      .finally(() => this.#listening.abort())
  }
}

function isError(event: StreamEvent): event is { readonly event: 'error'; readonly error: Told } {
  return event.event === 'error'
}

function toError({ code, message, hint }: Told): AirlockError {
  return new AirlockError(isErrorCode(code) ? code : 'internal', message, { hint })
}
