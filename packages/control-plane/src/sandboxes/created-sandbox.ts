import { AirlockError, type CreatedSandbox } from '@airlock/contract'
import { findAnyAgent } from '../store/agents.ts'
import { findReservation } from '../store/budgets.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'
import { readBudget } from '../spend/budgets.ts'
import type { Context } from '../app/context.ts'
import { toSandbox } from './nouns.ts'

/** A sandbox as it is given to who asked for it: with the agent that has it, and what it takes of the agent's budget. */
export async function toCreatedSandbox(
  { store, clock, budgetDefaults: defaults }: Pick<Context, 'store' | 'clock' | 'budgetDefaults'>,
  row: StoredSandbox,
): Promise<CreatedSandbox> {
  const { tenant, agent: id } = row
  return store.transaction(async (db) => {
    const agent = await findAnyAgent(db, row)
    const reservation = await findReservation(db, row.id)
    if (!agent || reservation === undefined) throw new AirlockError('sandbox_ended', 'The sandbox ended just now.')
    const { state, generation, approved, version, labels } = agent
    const budget = await readBudget(db, { tenant, agent: id }, { at: clock.now(), defaults })
    return {
      ...toSandbox(row),
      agentSnapshot: { state, generation, approved, version, labels },
      reserved: { reservation, limits: row.limits, budget },
    }
  })
}
