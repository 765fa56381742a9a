import type { Grants } from '../../agents/grants.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

export function grantHandlers(grants: Grants) {
  return {
    addGrant: async ({ caller, params, body }) => json(await grants.add(caller, params.id, body)),
    listGrants: async ({ caller, params, query }) =>
      json({ items: await grants.list(caller, { agent: params.id, tenant: query.tenant }) }),
    removeGrant: async ({ caller, params, query }) => {
      await grants.remove(caller, { agent: params.id, grant: params.grant, tenant: query.tenant })
      return NOTHING
    },
  } satisfies Partial<Handlers>
}
