import { AirlockError, type Failpoint, type Limits } from '@airlock/contract'
import type { GuestProcessLimits } from '@airlock/contract/guest'
import type { Log } from '@airlock/std'
import type { IsolationBackend } from '../isolation/backend.ts'
import type { Entry } from './entry.ts'
import type { Places } from './places.ts'
import type { Registry } from './registry.ts'
import { readState, writeState } from './state-file.ts'

export interface LimitsOptions {
  readonly backend: IsolationBackend
  readonly log: Log
  readonly failpoint: Failpoint
  readonly registry: Registry
  readonly places: Places
}

/**
 * Changes what a living sandbox is held to. What it is about to become is on disk before the kernel hears of it: whatever
 * breaks off in between, we say that it is what the control plane did not write down, and it asks again.
 */
export class LimitChanges {
  readonly #options: LimitsOptions

  constructor(options: LimitsOptions) {
    this.#options = options
  }

  /** The kernel holds it to what this answers. All or nothing; also while it is paused. */
  async change(id: string, to: Limits): Promise<Limits> {
    const { registry } = this.#options
    return registry.turns.run(id, async () => this.#change(id, registry.living(id), to))
  }

  /** After a start of ours: a disk that was being made larger is, and we say so. */
  async adopt(id: string, entry: Entry): Promise<void> {
    const held = await this.#options.backend.settleLimits(id, entry.limits)
    if (held.diskBytes !== entry.limits.diskBytes) await this.#save(id, entry, held)
  }

  async #change(id: string, entry: Entry, to: Limits): Promise<Limits> {
    const { backend, failpoint } = this.#options
    const from = entry.limits
    if (entry.isOld && to.openFiles !== from.openFiles)
      throw new AirlockError('limit_fixed', 'openFiles: the sandbox is from before its server was renewed.')
    // A disk is said to be larger once it is: it is the only one of them that does not go back.
    await this.#save(id, entry, { ...to, diskBytes: from.diskBytes, inodes: from.inodes })
    await failpoint('limit.state-written')
    try {
      const held = await backend.changeLimits(id, { tier: entry.permit.tier, from, to })
      if (held.diskBytes !== from.diskBytes) await this.#save(id, entry, held)
      return held
    } catch (error) {
      await this.#restore(id, entry, from)
      throw error
    }
  }

  async #save(id: string, entry: Entry, limits: Limits): Promise<void> {
    const dir = this.#options.places.stateDirOf(id)
    const state = await readState(dir)
    if (!state || state === 'damaged') throw new AirlockError('guest_lost', 'The state of the sandbox cannot be read.')
    await writeState(dir, { ...state, limits })
    entry.limits = limits
  }

  /** What our disk cannot take now is said again by the control plane, which sees that we differ. */
  async #restore(id: string, entry: Entry, limits: Limits): Promise<void> {
    try {
      await this.#save(id, entry, limits)
    } catch (error) {
      this.#options.log.error('which limits hold was not saved', { sandbox: id, error })
    }
  }
}

/** What each process that is started is held to: by its sandbox, and by who asked for it. */
export function processLimits(
  { limits, isOld }: Entry,
  asked: GuestProcessLimits = {},
): { limits?: GuestProcessLimits } {
  if (!isOld) return { limits: { openFiles: limits.openFiles, ...asked } }
  if (asked.cpuSeconds === undefined) return {}
  throw new AirlockError('limit_fixed', 'cpuTimeMs: the sandbox is from before its server was renewed.')
}
