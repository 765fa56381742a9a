import type { Budgets } from '../../spend/budgets.ts'
import { json, type Handlers } from '../call.ts'

export function budgetHandlers(budgets: Budgets) {
  return {
    getAgentBudget: async ({ caller, params }) => json(await budgets.ofAgent(caller, params.id)),
    setAgentBudget: async ({ caller, params, body }) => json(await budgets.setAgent(caller, params.id, body)),
    getTenantBudget: async ({ caller, params }) => json(await budgets.ofTenant(caller, params.id)),
    setTenantBudget: async ({ caller, params, body }) => json(await budgets.setTenant(caller, params.id, body)),
  } satisfies Partial<Handlers>
}
