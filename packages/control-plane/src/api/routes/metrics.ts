import type { MetricFeed } from '../../monitor/metrics.ts'
import { json, type Handlers } from '../call.ts'

export function metricHandlers(feed: MetricFeed) {
  return {
    tenantMetrics: async ({ caller, query }) => json(await feed.tenant(caller, query)),
    sandboxMetrics: async ({ caller, params, query, wants, signal }) => {
      if (wants === 'events') return { kind: 'events', events: await feed.follow(caller, params.id, signal) }
      return json(await feed.sandbox(caller, params.id, query))
    },
    agentMetrics: async ({ caller, params, query }) => json(await feed.agent(caller, params.id, query)),
  } satisfies Partial<Handlers>
}
