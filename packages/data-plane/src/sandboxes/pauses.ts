import { AirlockError, type Failpoint } from '@airlock/contract'
import type { Clock, Log } from '@airlock/std'
import type { IsolationBackend } from '../isolation/backend.ts'
import type { Entry } from './entry.ts'
import type { Places } from './places.ts'
import type { Registry } from './registry.ts'
import { readState, writeState } from './state-file.ts'

export interface PausesOptions {
  readonly backend: IsolationBackend
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
  readonly registry: Registry
  readonly places: Places
}

/** Stops the processes of a sandbox where they stand, and lets them go on. */
export class Pauses {
  readonly #options: PausesOptions

  constructor(options: PausesOptions) {
    this.#options = options
  }

  /** They stand still when this resolves, and their deadlines with them. Idempotent; outlives this process. */
  async pause(id: string): Promise<void> {
    const { registry } = this.#options
    await registry.turns.run(id, async () => this.#pause(id, registry.living(id)))
  }

  /** Idempotent. The guest hears how long it slept before it wakes. */
  async resume(id: string): Promise<void> {
    const { registry } = this.#options
    await registry.turns.run(id, async () => this.#resume(id, registry.living(id)))
  }

  async #pause(id: string, entry: Entry): Promise<void> {
    const { backend, clock, failpoint } = this.#options
    if (!backend.capabilities.pause) throw new AirlockError('isolation_unavailable', 'This node cannot pause.')
    if (entry.state === 'paused') return
    entry.link.hold()
    try {
      await backend.freeze(id)
    } catch (error) {
      await backend.thaw(id)
      entry.link.release(0, entry.sleptMs)
      throw error
    }
    entry.state = 'paused'
    entry.pausedAt = clock.now()
    await failpoint('pause.frozen')
    await this.#save(id, entry)
  }

  async #resume(id: string, entry: Entry): Promise<void> {
    const { backend, clock } = this.#options
    if (entry.state === 'running') return
    const pausedMs = Math.max(0, clock.now() - (entry.pausedAt ?? clock.now()))
    entry.sleptMs += pausedMs
    entry.pausedAt = null
    entry.link.release(pausedMs, entry.sleptMs)
    await backend.thaw(id)
    entry.state = 'running'
    await this.#save(id, entry)
  }

  /** What our disk cannot take is not worth waking it for: the control plane knows, and says it again after a restart. */
  async #save(id: string, { pausedAt, sleptMs }: Entry): Promise<void> {
    const { log, places } = this.#options
    const dir = places.stateDirOf(id)
    try {
      const state = await readState(dir)
      if (state === 'damaged') throw new AirlockError('disk_failed', 'sandbox.json cannot be read.')
      if (state) await writeState(dir, { ...state, pausedAt, sleptMs })
    } catch (error) {
      log.error('whether a sandbox is paused was not saved', { sandbox: id, error })
    }
  }
}
