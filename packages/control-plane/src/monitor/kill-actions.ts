import { type EndReason, isAirlockError, PERMIT_LIFE_MS, type RecordStatus } from '@airlock/contract'
import { sleep } from '@airlock/std'
import type { Context } from '../app/context.ts'
import { describeError } from '../evidence/evidence.ts'
import type { Termination } from '../sandboxes/terminate.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'
import type { Exhaustion } from './exhaustion.ts'
import type { WatchedSandbox } from './sandbox-watch.ts'

/** Ends that are being tried at once; the others wait. */
const AT_ONCE = 16
/** After so many failures it is escalated: told, and ended by every means there is. */
const FORCED_AFTER = 3
const FIRST_PAUSE_MS = 2_000
const LAST_PAUSE_MS = 30_000
const WAIT_MS = 100
const STOP_MS = 5_000

type World = Pick<Context, 'audit' | 'webhooks' | 'dataPlane' | 'clock' | 'log'>

interface Parts {
  readonly termination: Pick<Termination, 'terminate'>
  /** What is waited after the first failure; it doubles with each. */
  readonly firstPauseMs?: number
}

/** A sandbox that is to end. */
interface Due {
  readonly of: WatchedSandbox
  readonly found: Exhaustion
}

/**
 * Ends sandboxes that exhausted something, by the one way in which sandboxes end. What fails is tried again until the sandbox is
 * gone, however long that takes: from the third failure on it is told as critical, and it is frozen before each try.
 */
export class KillActions {
  readonly #world: World
  readonly #parts: Parts
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #stop = new AbortController()
  #trying = 0

  constructor(world: World, parts: Parts) {
    this.#world = world
    this.#parts = parts
  }

  /** Decided once: what comes later for the same sandbox changes nothing. Does not wait. */
  start(due: Due): void {
    const { sandbox: id } = due.of
    if (this.#underWay.has(id) || this.#stop.signal.aborted) return
    this.#tell(due, { status: 'requested' })
    const work = this.#run(due)
      // Only the stop breaks it off; the next start finds the sandbox as it is.
      .catch(() => undefined)
      .finally(() => this.#underWay.delete(id))
    this.#underWay.set(id, work)
  }

  /** Tries no more. What was begun is waited for, but not for long: the next start finds it as it is. */
  async stop(): Promise<void> {
    this.#stop.abort()
    const over = new AbortController()
    await Promise.race([this.settled(), sleep(STOP_MS, over.signal).catch(() => undefined)])
    over.abort()
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  async #run(due: Due): Promise<void> {
    const { signal } = this.#stop
    const { firstPauseMs = FIRST_PAUSE_MS } = this.#parts
    for (let failures = 0; ;) {
      while (this.#trying >= AT_ONCE) await sleep(WAIT_MS, signal)
      try {
        const endReason = await this.#try(due, failures >= FORCED_AFTER)
        return this.#tell(due, { status: 'done', failures, endReason })
      } catch (error) {
        failures++
        this.#sayFailed(due, failures, error)
      }
      await sleep(Math.min(firstPauseMs * 2 ** Math.min(failures - 1, 10), LAST_PAUSE_MS), signal)
    }
  }

  /** Answers why it ended after all: somebody may have been first. Null when nobody knows it any more. */
  async #try(due: Due, isForced: boolean): Promise<EndReason | null> {
    this.#trying++
    try {
      return (await (isForced ? this.#force(due) : this.#end(due, false))).endReason
    } catch (error) {
      if (isAirlockError(error) && error.code === 'sandbox_not_found') return null
      throw error
    } finally {
      this.#trying--
    }
  }

  async #end({ of, found }: Due, force: boolean): Promise<StoredSandbox> {
    return this.#parts.termination.terminate(of.sandbox, { reason: found.reason, actor: 'system', force })
  }

  /** It stands still first, as for a killswitch; and without a store the data plane alone ends it, whose row the sweep writes. */
  async #force(due: Due): Promise<StoredSandbox> {
    const { dataPlane, clock, log } = this.#world
    const { sandbox: id } = due.of
    await dataPlane
      .freeze({ tenant: null, agent: null, sandbox: id, permitsUntil: clock.now() + PERMIT_LIFE_MS })
      .catch((error: unknown) => log.warn('what must end does not stand still', { sandbox: id, error }))
    try {
      return await this.#end(due, true)
    } catch (error) {
      await dataPlane.stop(id, due.found.reason)
      throw error
    }
  }

  #sayFailed(due: Due, failures: number, error: unknown): void {
    const { log } = this.#world
    const said = { sandbox: due.of.sandbox, reason: due.found.reason, failures, error }
    if (failures < FORCED_AFTER) return log.warn('a sandbox that exhausted something does not end yet', said)
    log.error('a sandbox that exhausted something cannot be ended', said)
    if (failures === FORCED_AFTER) this.#tell(due, { status: 'failed', failures, error: describeError(error) })
  }

  #tell({ of, found }: Due, how: Told): void {
    const { audit, webhooks } = this.#world
    const { sandbox, tenant, agent } = of
    const { resource, reason, seen } = found
    const { status, failures = 0, error = null, endReason = null } = how
    const ended = endReason === null ? {} : { endReason }
    const payload = { action: 'kill', resource, reason, seen, ...(failures === 0 ? {} : { failures }), ...ended }
    audit.note({
      tenant,
      agent,
      sandbox,
      actor: 'system',
      point: 'monitor.alert',
      status,
      payload,
      ...(error ? { error } : {}),
    })
    webhooks.send(tenant, 'alert', {
      change: CHANGES[status],
      level: 'critical',
      sandbox,
      agent,
      resource,
      reason,
      seen,
      failures,
      error,
      endReason,
    })
  }
}

interface Told {
  readonly status: 'requested' | 'failed' | 'done'
  readonly failures?: number
  readonly error?: { readonly code: string; readonly message: string }
  readonly endReason?: EndReason | null
}

const CHANGES = {
  requested: 'ending',
  failed: 'end_failed',
  done: 'ended',
} as const satisfies Partial<Record<RecordStatus, string>>
