import {
  AirlockError,
  type Budget,
  type BudgetLimitName,
  type BudgetLimits,
  type SetBudgetBody,
} from '@airlock/contract'
import { dayOf, limitsOf } from './reserve.ts'
import { findAgent } from '../store/agents.ts'
import { type BudgetScope, findSetLimits, putSetLimits, type SetLimits, sumHeld } from '../store/budgets.ts'
import type { Queries } from '../store/engine/store.ts'
import { sumSpent } from '../store/usage.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import { assertUnbound } from '../tenants/overseer.ts'
import { mayUseAgent } from '../sandboxes/owned-sandbox.ts'
import { recordRefusal } from '../evidence/refusals.ts'
import { ownedTenant } from '../tenants/tenants.ts'

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'budgetDefaults' | 'guardian'>

/**
 * Budgets of agents and tenants: how much of what they may use is taken, and who changes it. That sandboxes stay within them is
 * decided where they are made (`spend/reserve.ts`), always: no budget is off, and a limit that is set is on record.
 */
export class Budgets {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  async ofAgent(caller: Caller, agent: string): Promise<Budget> {
    return this.#show(await this.#agent(caller, agent))
  }

  /** Who is bound to some agents does not see what the others use. */
  async ofTenant(caller: Caller, tenant: string): Promise<Budget> {
    return this.#show(await this.#tenant(caller, tenant))
  }

  async setAgent(caller: Caller, agent: string, body: SetBudgetBody): Promise<Budget> {
    const { tenant } = caller.principal
    return this.#set(caller, { tenant, agent }, { body, check: () => this.#agent(caller, agent) })
  }

  /** The route is for keys of the platform only. */
  async setTenant(caller: Caller, tenant: string, body: SetBudgetBody): Promise<Budget> {
    return this.#set(caller, { tenant, agent: null }, { body, check: () => this.#tenant(caller, tenant) })
  }

  async #set(
    caller: Caller,
    scope: BudgetScope,
    change: { readonly body: SetBudgetBody; readonly check: () => Promise<unknown> },
  ): Promise<Budget> {
    const { store, clock, guardian } = this.#world
    const wanted = budgetDeed(caller, scope, change.body)
    await recordRefusal(this.#world, wanted, async () => {
      await change.check()
      assertUnbound(caller)
    })
    const deed = await guardian.pass(caller, wanted)
    return doRecorded(this.#world, deed, async () => {
      const limits = await store.transaction(async (db) => {
        const next = changed(await findSetLimits(db, scope), change.body)
        await putSetLimits(db, scope, { limits: next, at: clock.now() })
        return next
      })
      return { value: await this.#show(scope), payload: { limits } }
    })
  }

  async #agent(caller: Caller, agent: string): Promise<BudgetScope> {
    const { tenant } = caller.principal
    const row = await this.#world.store.query((db) => findAgent(db, { tenant, agent }))
    if (!row || !mayUseAgent(caller.principal, agent)) throw new AirlockError('agent_not_found')
    return { tenant, agent }
  }

  async #tenant(caller: Caller, tenant: string): Promise<BudgetScope> {
    await ownedTenant(this.#world.store, caller.principal, tenant)
    assertUnbound(caller)
    return { tenant, agent: null }
  }

  /** One moment: nothing is reserved or released between what it adds up. */
  async #show(scope: BudgetScope): Promise<Budget> {
    const { store, clock, budgetDefaults } = this.#world
    return store.transaction(async (db) => readBudget(db, scope, { at: clock.now(), defaults: budgetDefaults }))
  }
}

/** Precondition: in a transaction, so that nothing is reserved or released between what it adds up. */
export async function readBudget(
  db: Queries,
  scope: BudgetScope,
  by: { readonly at: number; readonly defaults: BudgetLimits },
): Promise<Budget> {
  const day = dayOf(by.at)
  const { sandboxes, memoryBytes, diskBytes, cpuMillis } = await sumHeld(db, scope)
  const { computeMs, microDollars, calls, tokens } = await sumSpent(db, { ...scope, day })
  return {
    ...scope,
    limits: await limitsOf(db, scope, by.defaults),
    set: namesOf(await findSetLimits(db, scope)),
    reserved: { sandboxes, memoryBytes, diskBytes, cpus: cpuMillis / 1000 },
    spent: {
      day,
      computeSeconds: computeMs / 1000,
      dollars: microDollars / 1e6,
      modelCalls: calls,
      modelTokens: tokens,
    },
  }
}

const NAMES = [
  'sandboxes',
  'memoryBytes',
  'diskBytes',
  'cpus',
  'computeSecondsPerDay',
  'dollarsPerDay',
  'modelCallsPerDay',
  'modelTokensPerDay',
] as const satisfies readonly BudgetLimitName[]

function namesOf(limits: SetLimits): BudgetLimitName[] {
  return NAMES.filter((name) => limits[name] !== undefined)
}

/** What is absent stays, null goes back to the default. */
function changed(before: SetLimits, body: SetBudgetBody): SetLimits {
  const after: Partial<Record<BudgetLimitName, BudgetLimits[BudgetLimitName]>> = {}
  for (const name of NAMES) {
    const next = body[name] === undefined ? before[name] : body[name]
    if (next !== undefined && next !== null) after[name] = next
  }
  return after
}

/** In the evidence of the tenant whose budget it is, whoever sets it. */
function budgetDeed(caller: Caller, scope: BudgetScope, body: SetBudgetBody): Deed {
  const asked = Object.fromEntries(NAMES.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]]])))
  const payload = { requestId: caller.requestId, asked }
  return { point: 'budget.set', ...scope, sandbox: null, actor: caller.principal.actor, payload }
}
