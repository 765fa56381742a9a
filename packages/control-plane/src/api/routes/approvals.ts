import type { Asks } from '../../app/asks.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

const PENDING = { state: 'pending', limit: 200 } as const

export function approvalHandlers({ answers, webhooks }: Asks) {
  return {
    listApprovals: async ({ caller, query }) => json(await answers.list(caller, query)),
    approvalEvents: async ({ caller, query, wants, signal }) => {
      if (wants === 'events') return { kind: 'events', events: answers.events(caller, { ...query, signal }) }
      const { items } = await answers.list(caller, { ...query, ...PENDING })
      return json({ items })
    },
    getApproval: async ({ caller, params }) => json(await answers.get(caller, params.id)),
    approveApproval: async ({ caller, params, body }) => json(await answers.approve(caller, params.id, body)),
    rejectApproval: async ({ caller, params, body }) => json(await answers.reject(caller, params.id, body)),
    revokeApproval: async ({ caller, params }) => json(await answers.revoke(caller, params.id)),
    createWebhook: async ({ caller, body }) => json(await webhooks.create(caller, body)),
    listWebhooks: async ({ caller }) => json({ items: await webhooks.list(caller) }),
    getWebhook: async ({ caller, params }) => json(await webhooks.get(caller, params.id)),
    removeWebhook: async ({ caller, params }) => {
      await webhooks.remove(caller, params.id)
      return NOTHING
    },
  } satisfies Partial<Handlers>
}
