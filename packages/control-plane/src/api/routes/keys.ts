import type { Keys } from '../../tenants/keys.ts'
import { json, type Handlers } from '../call.ts'

export function keyHandlers(keys: Keys) {
  return {
    createKey: async ({ caller, body }) => json(await keys.create(caller, body)),
    listKeys: async ({ caller, query }) => json(await keys.list(caller, query)),
    getKey: async ({ caller, params }) => json(await keys.get(caller, params.id)),
    rotateKey: async ({ caller, params, body }) => json(await keys.rotate(caller, params.id, body)),
    revokeKey: async ({ caller, params }) => json(await keys.revoke(caller, params.id)),
  } satisfies Partial<Handlers>
}
