import type { Clock, Log } from '@airlock/std'
import type { IsolationBackend } from '../isolation/backend.ts'
import { bury, isLiving, lose } from './entry.ts'
import type { Registry } from './registry.ts'
import type { Seal } from './seal.ts'

const WATCH_EVERY_MS = 500

export interface WatchOptions {
  readonly backend: IsolationBackend
  readonly registry: Registry
  readonly seal: Seal
  readonly clock: Clock
  readonly log: Log
}

/** Notices deaths, and ends what has outlived its permit even when no control plane is left to ask for it. */
export class Watch {
  readonly #options: WatchOptions
  readonly #timer: NodeJS.Timeout

  constructor(options: WatchOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.#look(), WATCH_EVERY_MS)
  }

  /** Kills it now; the entry stays, `lost`, until the control plane has seen why and ends it. */
  async end(id: string, reason: 'guest_lost' | 'max_lifetime'): Promise<void> {
    const { backend, registry, seal, log } = this.#options
    const entry = registry.entries.get(id)
    if (!entry || !isLiving(entry)) return
    lose(entry, reason)
    await registry.turns
      .run(id, async () => {
        await seal.seal(id, entry, reason)
        await backend.stop(id)
      })
      .catch((error: unknown) => log.error('a sandbox would not die', { sandbox: id, error }))
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    const { backend, registry, clock } = this.#options
    for (const [id, entry] of registry.entries) {
      if (!isLiving(entry)) continue
      if (clock.now() >= entry.permit.endsAt) void this.end(id, 'max_lifetime')
      else if (!(await backend.adopt(id)) && isLiving(entry)) await bury(id, entry, backend)
    }
  }
}
