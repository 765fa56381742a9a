import type { App } from '../../app/app.ts'
import { json, type Handlers } from '../call.ts'
import { parseLabels } from '../labels.ts'

export function sandboxHandlers({
  creation,
  sandboxes,
  connections,
  limitChanges,
}: Pick<App, 'creation' | 'sandboxes' | 'connections' | 'limitChanges'>) {
  return {
    createSandbox: async ({ caller, body }) => json(await creation.create(caller, body)),
    getOrCreateSandbox: async ({ caller, params, body }) =>
      json(await creation.getOrCreate(caller, { ...body, name: params.name })),
    listSandboxes: async ({ caller, query }) => {
      const { label, ...rest } = query
      return json(await sandboxes.list(caller, { ...rest, labels: parseLabels(label) }))
    },
    getSandbox: async ({ caller, params }) => json(await sandboxes.get(caller, params.id)),
    connectSandbox: async ({ caller, params, body }) => json(await connections.connect(caller, params.id, body)),
    changeLimits: async ({ caller, params, body }) => json(await limitChanges.change(caller, params.id, body)),
    extendSandbox: async ({ caller, params, body }) => json(await sandboxes.extend(caller, params.id, body)),
    pauseSandbox: async ({ caller, params }) => json(await sandboxes.pause(caller, params.id)),
    resumeSandbox: async ({ caller, params }) => json(await sandboxes.resume(caller, params.id)),
    terminateSandbox: async ({ caller, params, body }) => json(await sandboxes.terminate(caller, params.id, body)),
  } satisfies Partial<Handlers>
}
