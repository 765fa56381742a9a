import type { Budget, SetBudgetBody } from './nouns.ts'
import type { Transport } from './transport/transport.ts'

/** What agents and tenants may have at once and spend in a day. To set it needs the role admin; for a tenant, of the platform. */
export class Budgets {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  async ofAgent(id: string, signal?: AbortSignal): Promise<Budget> {
    return this.#transport.json('getAgentBudget', { params: { id }, signal })
  }

  async ofTenant(id: string, signal?: AbortSignal): Promise<Budget> {
    return this.#transport.json('getTenantBudget', { params: { id }, signal })
  }

  /** What is absent stays as it is; null goes back to the default of the server. */
  async setAgent(id: string, limits: SetBudgetBody, signal?: AbortSignal): Promise<Budget> {
    return this.#transport.json('setAgentBudget', { params: { id }, body: limits, signal })
  }

  async setTenant(id: string, limits: SetBudgetBody, signal?: AbortSignal): Promise<Budget> {
    return this.#transport.json('setTenantBudget', { params: { id }, body: limits, signal })
  }
}
