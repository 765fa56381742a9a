import type { Core } from '../../app/core.ts'
import { json, type Handlers } from '../call.ts'
import { parseLabels } from '../labels.ts'

export function sandboxHandlers(core: Core) {
  return {
    createSandbox: async ({ caller, body }) => json(await core.createSandbox(caller, body)),
    getOrCreateSandbox: async ({ caller, params, body }) =>
      json(await core.getOrCreateSandbox(caller, { ...body, name: params.name })),
    listSandboxes: async ({ caller, query }) => {
      const { label, ...rest } = query
      return json(await core.listSandboxes(caller, { ...rest, labels: parseLabels(label) }))
    },
    getSandbox: async ({ caller, params }) => json(await core.getSandbox(caller, params.id)),
    connectSandbox: async ({ caller, params, body }) => json(await core.connectSandbox(caller, params.id, body)),
    changeLimits: async ({ caller, params, body }) => json(await core.changeLimits(caller, params.id, body)),
    extendSandbox: async ({ caller, params, body }) => json(await core.extendSandbox(caller, params.id, body.ttlMs)),
    pauseSandbox: async ({ caller, params }) => json(await core.pauseSandbox(caller, params.id)),
    resumeSandbox: async ({ caller, params }) => json(await core.resumeSandbox(caller, params.id)),
    terminateSandbox: async ({ caller, params, body }) => json(await core.terminateSandbox(caller, params.id, body)),
  } satisfies Partial<Handlers>
}
