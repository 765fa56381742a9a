import type { UsageQuery, UsageReport } from '@airlock/contract'
import { sumUsage } from '../store/usage.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { mayUseAgent } from '../sandboxes/owned-sandbox.ts'
import { ownedTenant } from '../tenants/tenants.ts'

/** Rows of one report; who wants more asks for fewer days. */
const MAX_ROWS = 10_000

/** The ledger: of one's own tenant, and of the agents that one may act for. */
export class Usage {
  readonly #world: Pick<Context, 'store'>

  constructor(world: Pick<Context, 'store'>) {
    this.#world = world
  }

  async report(caller: Caller, query: UsageQuery): Promise<UsageReport> {
    const { store } = this.#world
    const { principal } = caller
    const { id: tenant } = await ownedTenant(store, principal, query.tenant ?? principal.tenant)
    const { agent, ...filter } = query
    const asked = agent !== undefined && mayUseAgent(principal, agent) ? [agent] : []
    const agents = agent === undefined ? principal.agents : asked
    const rows = await store.query((db) => sumUsage(db, { ...filter, tenant, agents, limit: MAX_ROWS + 1 }))
    const items = rows.slice(0, MAX_ROWS).map(({ wallMs, cpuMs, computeMs, ...row }) => ({
      tenant,
      ...row,
      wallSeconds: wallMs / 1000,
      cpuSeconds: cpuMs / 1000,
      computeSeconds: computeMs / 1000,
      dollars: row.microDollars / 1e6,
    }))
    return { items, truncated: rows.length > MAX_ROWS }
  }
}
