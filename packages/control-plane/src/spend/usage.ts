import { AirlockError, type UsageQuery, type UsageReport } from '@airlock/contract'
import { findJob } from '../store/jobs.ts'
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
    const { agent, run, ...asked } = query
    const filter = run === undefined ? asked : { ...asked, sandbox: await this.#sandboxOf(tenant, run) }
    const named = agent !== undefined && mayUseAgent(principal, agent) ? [agent] : []
    const agents = agent === undefined ? principal.agents : named
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

  /** A run has one sandbox. One that has none yet used nothing: no sandbox has its id. */
  async #sandboxOf(tenant: string, run: string): Promise<string> {
    const row = await this.#world.store.query((db) => findJob(db, run))
    if (!row || row.tenant !== tenant) throw new AirlockError('run_not_found')
    return row.sandbox ?? run
  }
}
