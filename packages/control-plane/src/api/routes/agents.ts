import type { Agents } from '../../agents/agents.ts'
import { json, NOTHING, type Handlers } from '../call.ts'
import { parseLabels } from '../labels.ts'

export function agentHandlers(agents: Agents) {
  return {
    registerAgent: async ({ caller, body }) => json(await agents.register(caller, body)),
    listAgents: async ({ caller, query }) => {
      const { label, ...rest } = query
      return json(await agents.list(caller, { ...rest, labels: parseLabels(label) }))
    },
    getAgent: async ({ caller, params }) => json(await agents.get(caller, params.id)),
    updateAgent: async ({ caller, params, body }) => json(await agents.update(caller, params.id, body)),
    approveAgent: async ({ caller, params, body }) => json(await agents.approve(caller, params.id, body)),
    revokeAgent: async ({ caller, params, body }) => json(await agents.revoke(caller, params.id, body)),
    suspendAgent: async ({ caller, params, body }) => json(await agents.suspend(caller, params.id, body)),
    resumeAgent: async ({ caller, params, body }) => json(await agents.resume(caller, params.id, body)),
    heartbeatAgent: async ({ caller, params, body }) => json(await agents.heartbeat(caller, params.id, body)),
    removeAgent: async ({ caller, params, query }) => {
      await agents.remove(caller, params.id, query)
      return NOTHING
    },
  } satisfies Partial<Handlers>
}
