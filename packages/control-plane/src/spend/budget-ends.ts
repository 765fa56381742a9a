import { dayOf, limitsOf } from './reserve.ts'
import type { BudgetScope } from '../store/budgets.ts'
import { listLiving, type StoredSandbox } from '../store/sandboxes.ts'
import type { Queries } from '../store/engine/store.ts'
import { sumSpent } from '../store/usage.ts'
import type { Context } from '../app/context.ts'
import type { Termination } from '../sandboxes/terminate.ts'

/** Ends under way at once; more wait for the next look. */
const MAX_ENDS = 32

type World = Pick<Context, 'store' | 'node' | 'clock' | 'log' | 'budgetDefaults'>

/**
 * Ends sandboxes whose agent or tenant has used up the compute seconds of the day: no budget is overdrawn by what was begun
 * before it ran out. As exact as the bills of what lives, which are written once a minute.
 */
export class BudgetEnds {
  readonly #context: World
  readonly #termination: Pick<Termination, 'terminate'>
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(context: World, termination: Pick<Termination, 'terminate'>) {
    this.#context = context
    this.#termination = termination
  }

  /** One look of the sweep. Starts the ends that it finds due and does not wait for them. */
  async look(): Promise<void> {
    const { store, node } = this.#context
    const living = await store.query((db) => listLiving(db, node.id))
    for (const { id } of await store.query(async (db) => this.#due(db, living))) this.#start(id)
  }

  /** Waits for the ends under way, however they go. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  async #due(db: Queries, living: readonly StoredSandbox[]): Promise<readonly StoredSandbox[]> {
    const known = new Map<string, boolean>()
    const due: StoredSandbox[] = []
    for (const row of living) {
      const { tenant, agent } = row
      for (const scope of [
        { tenant, agent },
        { tenant, agent: null },
      ]) {
        const name = `${tenant}/${scope.agent ?? ''}`
        if (!known.has(name)) known.set(name, await this.#isKnownUsedUp(db, scope))
      }
      if (known.get(`${tenant}/${agent}`) === true || known.get(`${tenant}/`) === true) due.push(row)
    }
    return due
  }

  /** A scope that cannot be read ends nothing and does not hide the others; the next look reads it again. */
  async #isKnownUsedUp(db: Queries, scope: BudgetScope): Promise<boolean> {
    try {
      return await this.#isUsedUp(db, scope)
    } catch (error) {
      this.#context.log.error('could not read the compute budget; its sandboxes run on', { ...scope, error })
      return false
    }
  }

  async #isUsedUp(db: Queries, scope: BudgetScope): Promise<boolean> {
    const { clock, budgetDefaults } = this.#context
    const { computeMs } = await sumSpent(db, { ...scope, day: dayOf(clock.now()) })
    return computeMs >= (await limitsOf(db, scope, budgetDefaults)).computeSecondsPerDay * 1000
  }

  #start(id: string): void {
    if (this.#underWay.has(id) || this.#underWay.size >= MAX_ENDS) return
    const work = this.#termination
      .terminate(id, { reason: 'budget_exhausted', actor: 'system' })
      .then(() => undefined)
      .catch((error: unknown) =>
        this.#context.log.warn('a sandbox without a budget does not end yet', { sandbox: id, error }),
      )
      .finally(() => this.#underWay.delete(id))
    this.#underWay.set(id, work)
  }
}
