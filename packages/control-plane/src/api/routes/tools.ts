import type { App } from '../../app/app.ts'
import { type Handlers, json, NOTHING } from '../call.ts'

export function toolHandlers({ secrets, tools }: Pick<App, 'secrets' | 'tools'>) {
  return {
    getSealKey: async ({ caller }) => json(await secrets.key(caller)),
    listSecrets: async ({ caller }) => json({ items: await secrets.list(caller) }),
    putSecret: async ({ caller, params, body }) => json(await secrets.put(caller, params.name, body)),
    removeSecret: async ({ caller, params }) => {
      await secrets.remove(caller, params.name)
      return NOTHING
    },
    listTools: async ({ caller }) => json({ items: await tools.list(caller) }),
    getTool: async ({ caller, params }) => json(await tools.get(caller, params.name)),
    putTool: async ({ caller, params, body }) => json(await tools.put(caller, params.name, body)),
    removeTool: async ({ caller, params }) => {
      await tools.remove(caller, params.name)
      return NOTHING
    },
  } satisfies Partial<Handlers>
}
