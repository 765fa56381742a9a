import { AirlockError, type Limits, type NodeSandbox, type Sandbox, type SomeLimits } from '@airlock/contract'
import { holdFor, reserveChange } from '../spend/reserve.ts'
import { assertUsable } from './admit.ts'
import { changedLimits } from './fill-limits.ts'
import { findAgent } from '../store/agents.ts'
import { findSandbox, type StoredSandbox, updateLimits } from '../store/sandboxes.ts'
import type { Activity } from './activity.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { deedOf, doRecorded } from '../evidence/evidence.ts'
import { isEnded } from './lifecycle.ts'
import { nodeCapacity } from '../nodes/node-capacity.ts'
import { toSandbox } from './nouns.ts'
import { inSandbox, readableSandbox } from './owned-sandbox.ts'

/** Steps under way at once; more wait for the next look. */
const MAX_STEPS = 8

/**
 * What living sandboxes are held to. More is set aside before the kernel gives it, less is given back once the kernel has taken
 * it, and the row is written last: until then it says what was before, and `agree` sees to it that this holds again.
 */
export class LimitChanges {
  readonly #context: Context
  readonly #activity: Activity
  readonly #underWay = new Map<string, Promise<unknown>>()

  constructor(context: Context, activity: Activity) {
    this.#context = context
    this.#activity = activity
  }

  /** All of them or none. One that is paused stays so. */
  async change(caller: Caller, sandbox: string, asked: SomeLimits): Promise<Sandbox> {
    const { kills, guardian, turns } = this.#context
    const row = await readableSandbox(this.#context, caller, sandbox)
    kills.assertAlive({ tenant: row.tenant, agent: row.agent, sandbox: row.id })
    const about = askedFor(row, changedLimits(row.limits, asked))
    const payload = { asked: named(asked), before: row.limits, ...about }
    const deed = deedOf(caller, row, { point: 'sandbox.limit', payload })
    const passed = await guardian.pass(caller, deed, { kind: 'sandbox', ...about })
    this.#context.ephemeral.disturb(row.id)
    return turns.run(row.id, async () =>
      doRecorded(this.#context, passed, async () => {
        const changed = await this.#changeInTurn(row.id, asked)
        return { value: toSandbox(this.#activity.current(changed)), payload: { limits: changed.limits } }
      }),
    )
  }

  /** For the sweep: a crash may leave the node with other limits than the row says. The row holds, but no disk shrinks. */
  agree(row: StoredSandbox, there: NodeSandbox): void {
    const isSettled = (state: string) => state === 'active' || state === 'paused'
    if (!isSettled(row.state) || isSame(row.limits, there.limits)) return
    if (this.#underWay.has(row.id) || this.#underWay.size >= MAX_STEPS) return
    const { store, dataPlane, turns, log } = this.#context
    const work = async () => {
      const now = await store.query((db) => findSandbox(db, row.id))
      const node = (await dataPlane.list()).find(({ id }) => id === row.id)
      if (!now || !node || !isSettled(now.state) || isSame(now.limits, node.limits)) return
      const { diskBytes, inodes } = node.limits
      const held = await dataPlane.changeLimits(row.id, { ...now.limits, diskBytes, inodes })
      log.warn('a sandbox is held to what its row says again', { sandbox: row.id, limits: held })
      await this.#write(now, held)
    }
    const mine = turns
      .run(row.id, work)
      .catch((error: unknown) => log.warn('a sandbox has other limits than its row', { sandbox: row.id, error }))
      .finally(() => this.#underWay.delete(row.id))
    this.#underWay.set(row.id, mine)
  }

  /** For the first look of a process: what was set aside for a change that was broken off is free again. */
  async settle({ id, limits }: StoredSandbox): Promise<void> {
    await this.#context.store.transaction((db) => holdFor(db, id, limits))
  }

  /** Waits for what is under way, however it goes. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  /** Somebody may have changed it, or ended it, since it was looked at. */
  async #changeInTurn(id: string, asked: SomeLimits): Promise<StoredSandbox> {
    const { store, kills, dataPlane, failpoint, log } = this.#context
    const row = await store.query((db) => findSandbox(db, id))
    if (!row || isEnded(row.state)) throw new AirlockError('sandbox_ended')
    if (row.state !== 'active' && row.state !== 'paused') throw new AirlockError('sandbox_not_active')
    kills.assertAlive({ tenant: row.tenant, agent: row.agent, sandbox: id })
    const to = changedLimits(row.limits, asked)
    await this.#reserve(row, to)
    await failpoint('limit.reserved')
    let held: Limits
    try {
      held = await inSandbox(store, id, async () => dataPlane.changeLimits(id, to))
    } catch (error) {
      await this.settle(row).catch((cause: unknown) =>
        log.warn('what was set aside for a change of limits is free only later', { sandbox: id, cause }),
      )
      throw error
    }
    await failpoint('limit.applied')
    const changed = await this.#write(row, held)
    await failpoint('limit.row-written')
    return changed
  }

  /** Budgets, capacity and agent are decided in the transaction that sets it aside. */
  async #reserve(row: StoredSandbox, limits: Limits): Promise<void> {
    const { store, clock, budgetDefaults: defaults } = this.#context
    const { id: sandbox, tenant, agent, node } = row
    const asking = { sandbox, tenant, agent, node, limits, now: clock.now() }
    await store.transaction(async (db) => {
      const owner = await findAgent(db, { tenant, agent })
      if (!owner) throw new AirlockError('agent_not_found')
      assertUsable(owner)
      await reserveChange(db, asking, { from: row.limits, defaults, capacity: nodeCapacity(this.#context) })
    })
  }

  async #write(row: StoredSandbox, held: Limits): Promise<StoredSandbox> {
    return this.#context.store.transaction(async (db) => {
      const changed = await updateLimits(db, row.id, held)
      if (!changed) throw new AirlockError('sandbox_ended')
      await holdFor(db, row.id, held)
      return changed
    })
  }
}

/** What rules see: the sandbox as it would be, so that what bounds a creation bounds this too. */
function askedFor(row: StoredSandbox, limits: Limits) {
  const { template, labels, createdAt, endsAt } = row
  const mounts = row.mounts.map(({ path, mode }) => ({ path, mode }))
  const tier = row.isolation?.tier ?? 'standard'
  return { template, tier, limits, labels, lifetimeMs: endsAt - createdAt, mounts }
}

function named(asked: SomeLimits): Record<string, number | null> {
  return Object.fromEntries(
    Object.entries(asked).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

function isSame(one: Limits, other: Limits): boolean {
  return (
    one.memoryBytes === other.memoryBytes &&
    one.cpus === other.cpus &&
    one.pids === other.pids &&
    one.diskBytes === other.diskBytes &&
    one.inodes === other.inodes &&
    one.openFiles === other.openFiles &&
    one.cpuSeconds === other.cpuSeconds
  )
}
