import { AirlockError, type CreateTenantBody, type Principal, type Tenant } from '@airlock/contract'
import { defaultAgent } from '../identity/first-start.ts'
import { insertAgentIfAbsent } from '../store/agents.ts'
import type { Store } from '../store/engine/store.ts'
import { findTenant, insertTenantIfAbsent, pageTenants, type StoredTenant } from '../store/tenants.ts'
import type { Context } from '../app/context.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import { type Deed, doRecorded } from '../evidence/evidence.ts'
import { recordRefusal } from '../evidence/refusals.ts'

type World = Pick<Context, 'store' | 'audit' | 'clock' | 'guardian'>

/** Tenants: made by the platform, seen by their own people. */
export class Tenants {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** The route is for keys of the platform only. */
  async create(caller: Caller, body: CreateTenantBody): Promise<Tenant> {
    const { store, clock, guardian } = this.#world
    const wanted = tenantDeed(caller, body.id)
    await recordRefusal(this.#world, wanted, async () => {
      if (await store.query((db) => findTenant(db, body.id))) throw new AirlockError('tenant_exists')
    })
    const deed = await guardian.pass(caller, wanted)
    return doRecorded(this.#world, deed, async () => {
      const row = { id: body.id, createdAt: clock.now() }
      await store.transaction(async (db) => {
        if (!(await insertTenantIfAbsent(db, row))) throw new AirlockError('tenant_exists')
        await insertAgentIfAbsent(db, defaultAgent(row.id, row.createdAt))
      })
      return { value: toTenant(row) }
    })
  }

  async list(
    caller: Caller,
    asked: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Tenant>> {
    const { store } = this.#world
    const { principal } = caller
    if (!principal.platform) return { items: [await this.get(caller, principal.tenant)], nextCursor: null }
    const page = { after: asked.cursor, limit: asked.limit + 1 }
    const rows = await store.query((db) => pageTenants(db, page))
    return toPage(rows, asked.limit, toTenant)
  }

  async get(caller: Caller, id: string): Promise<Tenant> {
    return toTenant(await ownedTenant(this.#world.store, caller.principal, id))
  }
}

/** A tenant that the caller may know of: not yours is not found. */
export async function ownedTenant(store: Store, principal: Principal, id: string): Promise<StoredTenant> {
  const isOwn = id === principal.tenant || principal.platform
  const row = isOwn ? await store.query((db) => findTenant(db, id)) : undefined
  if (!row) throw new AirlockError('tenant_not_found')
  return row
}

function tenantDeed(caller: Caller, tenant: string): Deed {
  const { principal, requestId } = caller
  const of = { tenant: principal.tenant, agent: null, sandbox: null, actor: principal.actor }
  return { point: 'tenant.create', ...of, payload: { requestId, tenant } }
}

function toTenant(row: StoredTenant): Tenant {
  return { id: row.id, createdAt: new Date(row.createdAt).toISOString() }
}
