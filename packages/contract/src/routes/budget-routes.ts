import { z } from 'zod'
import { budget, setBudgetBody } from '../nouns/budget.ts'
import type { Role } from '../nouns/principal.ts'
import { READERS, type Route } from './route.ts'
import { agentId, id } from '../nouns/scalars.ts'
import { usageQuery, usageReport } from '../nouns/usage.ts'

const ADMINS: readonly Role[] = ['admin']

const ofAgent = z.strictObject({ id: agentId })
const ofTenant = z.strictObject({ id })

/** The part of the table of routes that is about what may be used, and what was. */
export const BUDGET_ROUTES = {
  getAgentBudget: {
    method: 'GET',
    path: '/v1/budgets/agents/{id}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'What an agent may have at once and spend in a day, and how much of it is taken.',
    roles: READERS,
    params: ofAgent,
    answers: 'json',
    response: budget,
    errors: ['agent_not_found'],
  },
  setAgentBudget: {
    method: 'PUT',
    path: '/v1/budgets/agents/{id}',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Set limits of an agent. What is absent stays; null goes back to the default. Sandboxes that live go on.',
    roles: ADMINS,
    params: ofAgent,
    body: setBudgetBody,
    answers: 'json',
    response: budget,
    errors: ['agent_not_found', 'evidence_unavailable'],
    effect: 'budget.set',
  },
  getTenantBudget: {
    method: 'GET',
    path: '/v1/budgets/tenants/{id}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'The same of all agents of a tenant together.',
    roles: READERS,
    params: ofTenant,
    answers: 'json',
    response: budget,
    errors: ['tenant_not_found'],
  },
  setTenantBudget: {
    method: 'PUT',
    path: '/v1/budgets/tenants/{id}',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Set limits of a tenant; only the platform may.',
    roles: ADMINS,
    scope: 'platform',
    params: ofTenant,
    body: setBudgetBody,
    answers: 'json',
    response: budget,
    errors: ['tenant_not_found', 'evidence_unavailable'],
    effect: 'budget.set',
  },
  getUsage: {
    method: 'GET',
    path: '/v1/usage',
    needs: 'serving',
    repeats: 'safe',
    summary:
      'What was used: compute, calls of models, tokens and dollars, in rows as asked for; as CSV when asked for.',
    roles: READERS,
    query: usageQuery,
    answers: 'json-or-csv',
    response: usageReport,
    errors: ['tenant_not_found', 'run_not_found'],
  },
} as const satisfies Record<string, Route>
