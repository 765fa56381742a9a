import { AirlockError, isAirlockError } from '@airlock/contract'
import { deadline, type Log } from '@airlock/std'
import type { IsolationBackend, SandboxSpec, StartedSandbox } from './backend.ts'

/** How long a start may take in all, until its guest is there. */
export const START_LIMIT_MS = 30_000

/**
 * What a technology brings. It promises less than the port: `start` may leave something behind when it throws, and has no limit
 * but its signal; `stop` and `reap` are not called for a sandbox that is being started.
 */
export interface BareBackend extends IsolationBackend {
  /** Whether anything on this host bears this id. */
  holds(id: string): Promise<boolean>
}

/** The rest of the promise about starts, the same for every technology. */
export function guardBackend(bare: BareBackend, log: Log): IsolationBackend {
  const guard = new StartGuard(bare, log)
  return {
    name: bare.name,
    capabilities: bare.capabilities,
    images: bare.images,
    hostPaths: bare.hostPaths,
    worktrees: bare.worktrees,
    hostDisk: bare.hostDisk,
    start: async (spec, signal) => guard.start(spec, signal),
    stop: async (id) => guard.stop(id),
    reap: async (keep) => guard.reap(keep),
    wallOf: (tier, image) => bare.wallOf(tier, image),
    adopt: async (id) => bare.adopt(id),
    changeLimits: async (id, change) => bare.changeLimits(id, change),
    settleLimits: async (id, limits) => bare.settleLimits(id, limits),
    takenBytes: async () => bare.takenBytes(),
    freeze: async (id) => bare.freeze(id),
    thaw: async (id) => bare.thaw(id),
    isFrozen: async (id) => bare.isFrozen(id),
    stats: async (id) => bare.stats(id),
    sample: async (ids) => bare.sample(ids),
    strain: async (id, child) => bare.strain(id, child),
    isDiskFull: async (id) => bare.isDiskFull(id),
    lostFor: async (id, tier) => bare.lostFor(id, tier),
    groupUsage: async (id, child) => bare.groupUsage(id, child),
  }
}

interface Start {
  /** Never rejects; what the start left is gone by then, or was logged. */
  readonly ended: Promise<unknown>
  readonly abort: AbortController
}

/** Starts each sandbox once, in bounded time, all or nothing; a stop breaks a start off and waits for its end. */
export class StartGuard {
  readonly #bare: Pick<BareBackend, 'holds' | 'start' | 'stop' | 'reap'>
  readonly #log: Log
  readonly #starting = new Map<string, Start>()

  constructor(bare: Pick<BareBackend, 'holds' | 'start' | 'stop' | 'reap'>, log: Log) {
    this.#bare = bare
    this.#log = log
  }

  async start(spec: SandboxSpec, signal: AbortSignal): Promise<StartedSandbox> {
    const { id } = spec
    if (this.#starting.has(id)) throw startedBefore(id)
    const abort = new AbortController()
    const until = deadline(START_LIMIT_MS, AbortSignal.any([signal, abort.signal]))
    const started = this.#startOrDestroy(spec, until)
    this.#starting.set(id, { ended: started.catch(() => undefined), abort })
    return await started.finally(() => this.#starting.delete(id))
  }

  async stop(id: string): Promise<void> {
    const starting = this.#starting.get(id)
    starting?.abort.abort(new AirlockError('sandbox_ended', 'The sandbox was ended while it started.'))
    await starting?.ended
    await this.#bare.stop(id)
  }

  /** What is being started is not an orphan. */
  async reap(keep: ReadonlySet<string>): Promise<readonly string[]> {
    return await this.#bare.reap(new Set([...keep, ...this.#starting.keys()]))
  }

  async #startOrDestroy(spec: SandboxSpec, signal: AbortSignal): Promise<StartedSandbox> {
    // Checked before anything is made, for a start that fails destroys whatever bears its id.
    if (await this.#bare.holds(spec.id)) throw startedBefore(spec.id)
    try {
      const started = await this.#bare.start(spec, signal)
      // Too late is not started: whoever asked has been told so, and nobody would end it.
      signal.throwIfAborted()
      return started
    } catch (error) {
      await this.#bare
        .stop(spec.id)
        .catch((cause: unknown) => this.#log.error('a failed start left something behind', { sandbox: spec.id, cause }))
      throw isAirlockError(error) ? error : new AirlockError('start_failed', undefined, { cause: error })
    }
  }
}

function startedBefore(id: string): AirlockError {
  return new AirlockError('internal', `${id} was started before.`)
}
