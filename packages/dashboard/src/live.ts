import { AirlockError, type AirlockClient, type AuditEvent } from '@airlock/sdk/browser'

const RETRY_MS = 3_000

export type LiveState = 'connecting' | 'live' | 'lost'

/** One stream of events for the whole page, however many parts listen. */
export class Live {
  readonly #client: AirlockClient
  readonly #onSignedOut: () => void
  readonly #listeners = new Set<(event: AuditEvent) => void>()
  readonly #watchers = new Set<(state: LiveState) => void>()
  #state: LiveState = 'connecting'

  constructor(client: AirlockClient, onSignedOut: () => void) {
    this.#client = client
    this.#onSignedOut = onSignedOut
  }

  get state(): LiveState {
    return this.#state
  }

  /** Until the signal. A stream that the server refuses or ends is asked for again. */
  async run(signal: AbortSignal): Promise<void> {
    let after: number | undefined
    while (!signal.aborted) {
      try {
        const onProgress = (seq: number): void => {
          after = seq
          this.#set('live')
        }
        for await (const event of this.#client.events({ signal, after, onProgress })) this.#publish(event)
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof AirlockError && error.code === 'unauthenticated') return this.#onSignedOut()
        // The parts show what fails when they ask; this only tells that nothing is live.
        this.#set('lost')
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }

  onEvent(listener: (event: AuditEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  onState(watcher: (state: LiveState) => void): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  #publish(event: AuditEvent): void {
    this.#set('live')
    for (const listener of this.#listeners) listener(event)
  }

  #set(state: LiveState): void {
    if (state === this.#state) return
    this.#state = state
    for (const watcher of this.#watchers) watcher(state)
  }
}
