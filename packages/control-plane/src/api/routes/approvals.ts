import type { App } from '../../app/app.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

const PENDING = { state: 'pending', limit: 200 } as const

export function approvalHandlers({ approvals, webhooks }: Pick<App, 'approvals' | 'webhooks'>) {
  return {
    listApprovals: async ({ caller, query }) => json(await approvals.list(caller, query)),
    approvalEvents: async ({ caller, query, wants, signal }) => {
      if (wants === 'events') return { kind: 'events', events: approvals.events(caller, { ...query, signal }) }
      const { items } = await approvals.list(caller, { ...query, ...PENDING })
      return json({ items })
    },
    getApproval: async ({ caller, params }) => json(await approvals.get(caller, params.id)),
    approveApproval: async ({ caller, params, body }) => json(await approvals.approve(caller, params.id, body)),
    rejectApproval: async ({ caller, params, body }) => json(await approvals.reject(caller, params.id, body)),
    revokeApproval: async ({ caller, params }) => json(await approvals.revoke(caller, params.id)),
    createWebhook: async ({ caller, body }) => json(await webhooks.create(caller, body)),
    listWebhooks: async ({ caller }) => json({ items: await webhooks.list(caller) }),
    getWebhook: async ({ caller, params }) => json(await webhooks.get(caller, params.id)),
    removeWebhook: async ({ caller, params }) => {
      await webhooks.remove(caller, params.id)
      return NOTHING
    },
  } satisfies Partial<Handlers>
}
