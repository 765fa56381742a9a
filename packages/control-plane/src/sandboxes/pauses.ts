import { AirlockError, type NodeSandbox, type PausedBy } from '@airlock/contract'
import { findSandbox, setPausedByRequest, type StoredSandbox } from '../store/sandboxes.ts'
import type { Activity } from './activity.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { deedOf, type Deed, describeError } from '../evidence/evidence.ts'
import { isEnded, moveSandbox } from './lifecycle.ts'
import { assertHere, ownedSandbox } from './owned-sandbox.ts'

/** Steps under way at once; more wait for the next look. */
const MAX_STEPS = 8

/** Sandboxes that stand still: asked for, or after a while without use. It reduces, so nothing here waits for evidence. */
export class Pauses {
  readonly #context: Context
  readonly #activity: Activity
  readonly #underWay = new Map<string, Promise<unknown>>()

  constructor(context: Context, activity: Activity) {
    this.#context = context
    this.#activity = activity
  }

  /** Idempotent. What was paused for being idle stays paused from now on. */
  async pause(caller: Caller, id: string): Promise<StoredSandbox> {
    const row = await ownedSandbox(this.#context.store, caller, id)
    if (isEnded(row.state)) throw new AirlockError('sandbox_ended')
    await assertHere(this.#context, row)
    const deed = deedOf(caller, row, { point: 'sandbox.pause', payload: { by: 'request' } })
    return this.#context.turns.run(id, async () => this.#pauseInTurn(id, deed, 'request'))
  }

  /** For the sweep: begins it and does not wait. `isIdle` is asked again when its turn comes, for a use may come between. */
  pauseIdle(row: StoredSandbox, isIdle: (now: StoredSandbox) => boolean): void {
    const { id: sandbox, tenant, agent } = row
    const deed = { point: 'sandbox.pause', tenant, agent, sandbox, actor: 'system', payload: { by: 'idle' } } as const
    this.#begin(row, async () => {
      const now = await this.#context.store.query((db) => findSandbox(db, row.id))
      if (now?.state === 'active' && isIdle(now)) await this.#pauseInTurn(row.id, deed, 'idle')
    })
  }

  /** For the sweep: a crash may leave a sandbox standing still, or going on, against what its row says. The row holds. */
  agree(row: StoredSandbox, there: NodeSandbox): void {
    const differs = (state: string, node: string) =>
      (state === 'active' && node === 'paused') || (state === 'paused' && node === 'running')
    if (!differs(row.state, there.state)) return
    const { store, dataPlane, kills } = this.#context
    this.#begin(row, async () => {
      const now = await store.query((db) => findSandbox(db, row.id))
      const node = (await dataPlane.list()).find(({ id }) => id === row.id)
      if (!now || !node || !differs(now.state, node.state)) return
      if (kills.covers({ ...now, sandbox: now.id })) return
      await (now.state === 'paused' ? dataPlane.pause(now.id) : dataPlane.resume(now.id))
    })
  }

  /** Waits for what is under way, however it goes. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  #begin({ id }: StoredSandbox, work: () => Promise<void>): void {
    if (this.#underWay.has(id) || this.#underWay.size >= MAX_STEPS) return
    const { turns, log } = this.#context
    const mine = turns
      .run(id, work)
      .catch((error: unknown) => log.warn('a sandbox is not paused or resumed yet', { sandbox: id, error }))
      .finally(() => this.#underWay.delete(id))
    this.#underWay.set(id, mine)
  }

  /** Preconditions: the caller holds the sandbox's turn. */
  async #pauseInTurn(id: string, deed: Deed, by: PausedBy): Promise<StoredSandbox> {
    const { store, audit, clock } = this.#context
    const row = await store.query((db) => findSandbox(db, id))
    if (!row || isEnded(row.state)) throw new AirlockError('sandbox_ended')
    if (row.state === 'paused')
      return by === 'idle' ? row : ((await store.query((db) => setPausedByRequest(db, id))) ?? row)
    if (row.state !== 'active') throw new AirlockError('sandbox_not_active')
    const startedAt = clock.now()
    audit.note({ ...deed, status: 'requested' })
    try {
      const paused = await this.#freeze(row, by)
      audit.note({ ...deed, status: 'done', durationMs: clock.now() - startedAt })
      return paused
    } catch (error) {
      audit.note({ ...deed, status: 'failed', error: describeError(error) })
      throw error
    }
  }

  /** Frozen first, so that what the row says is true. Where it cannot be written, the sandbox goes on. */
  async #freeze(row: StoredSandbox, by: PausedBy): Promise<StoredSandbox> {
    const { store, dataPlane, clock, failpoint, log, doorNews } = this.#context
    await dataPlane.pause(row.id)
    doorNews.publish({ what: 'paused', sandboxes: [row.id] })
    const { lastActiveAt, expiresAt } = this.#activity.current(row)
    const changes = { pausedAt: clock.now(), pausedBy: by, lastActiveAt, expiresAt }
    try {
      const paused = await store.transaction((db) => moveSandbox(db, row, { to: 'paused', changes }))
      await failpoint('pause.row-written')
      this.#activity.forget(row.id)
      return paused
    } catch (error) {
      await dataPlane
        .resume(row.id)
        .catch((cause: unknown) =>
          log.warn('a sandbox stands still though its row says active', { row: row.id, cause }),
        )
      throw error
    }
  }
}
