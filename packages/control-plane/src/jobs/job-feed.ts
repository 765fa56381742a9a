import { EventEmitter, once } from 'node:events'
import { deadline } from '@airlock/std'

/** Jobs of other nodes, and of this node when an event was missed, are looked at this often. */
const LOOK_MS = 1000

/** Tells readers in this process that a job said something or changed. */
export class JobFeed {
  readonly #changes = new EventEmitter().setMaxListeners(0)

  tell(job: string): void {
    this.#changes.emit(job)
  }

  /** Resolves at the next change, or after a second. Call it before looking, so that no change falls between. */
  next(job: string, signal: AbortSignal): { readonly changed: Promise<void>; readonly leave: () => void } {
    const over = new AbortController()
    const until = AbortSignal.any([deadline(LOOK_MS, signal), over.signal])
    const changed = once(this.#changes, job, { signal: until }).then(
      () => undefined,
      // The time is up, or the reader has left and sees its own signal.
      () => undefined,
    )
    return { changed, leave: () => over.abort() }
  }
}
