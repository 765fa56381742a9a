import type { Tenants } from '../../tenants/tenants.ts'
import { json, type Handlers } from '../call.ts'

export function tenantHandlers(tenants: Tenants) {
  return {
    createTenant: async ({ caller, body }) => json(await tenants.create(caller, body)),
    listTenants: async ({ caller, query }) => json(await tenants.list(caller, query)),
    getTenant: async ({ caller, params }) => json(await tenants.get(caller, params.id)),
  } satisfies Partial<Handlers>
}
