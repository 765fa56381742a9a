import { AirlockError } from '@airlock/contract'
import type { Core } from '../../orchestration/core.ts'
import { json, type Handlers } from '../call.ts'

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
    extendSandbox: async ({ caller, params, body }) => json(await core.extendSandbox(caller, params.id, body.ttlMs)),
    terminateSandbox: async ({ caller, params, body }) => json(await core.terminateSandbox(caller, params.id, body)),
  } satisfies Partial<Handlers>
}

/** `a=b,c=d`. Fails closed: a part without `=` would otherwise match everything. */
function parseLabels(text: string | undefined): Readonly<Record<string, string>> {
  if (text === undefined) return {}
  return Object.fromEntries(
    text.split(',').map((part) => {
      const [, key, value] = /^([^=]+)=(.*)$/.exec(part) ?? []
      if (key === undefined || value === undefined)
        throw new AirlockError('invalid_request', 'label: must be key=value, several separated by commas')
      return [key, value] as const
    }),
  )
}
