import type { App } from '../../app/app.ts'
import { type Handlers, json, NOTHING } from '../call.ts'

export function policyHandlers({ policies, backtests }: Pick<App, 'policies' | 'backtests'>) {
  return {
    listPolicies: async ({ caller, query }) => json({ items: await policies.list(caller, query.scope) }),
    getPolicy: async ({ caller, params, query }) => json(await policies.get(caller, params.name, query)),
    listPolicyVersions: async ({ caller, params, query }) => json(await policies.versions(caller, params.name, query)),
    putPolicy: async ({ caller, params, query, body }) =>
      json(await policies.put(caller, params.name, { ...query, ...body })),
    removePolicy: async ({ caller, params, query }) => {
      await policies.remove(caller, params.name, query)
      return NOTHING
    },
    checkPolicy: async ({ body }) => json(policies.check(body.document)),
    evaluatePolicies: async ({ caller, body }) => json(await policies.evaluate(caller, body)),
    backtestPolicy: async ({ caller, body }) => json(await backtests.run(caller, body)),
    getGuardian: async ({ caller }) => json(policies.status(caller)),
    listRules: async ({ caller }) => json({ items: policies.rules(caller) }),
  } satisfies Partial<Handlers>
}
