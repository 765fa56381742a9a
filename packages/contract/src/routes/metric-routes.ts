import { z } from 'zod'
import {
  agentMetrics,
  metricEvent,
  metricsQuery,
  sandboxMetrics,
  tenantMetrics,
  tenantMetricsQuery,
} from '../nouns/metric.ts'
import { READERS, type Route } from './route.ts'
import { agentId, sandboxId } from '../nouns/scalars.ts'

/** The part of the table of routes that tells what sandboxes use. */
export const METRIC_ROUTES = {
  tenantMetrics: {
    method: 'GET',
    path: '/v1/metrics',
    needs: 'serving',
    repeats: 'safe',
    summary: 'What every living sandbox of yours on this node uses now, and all of them together.',
    roles: READERS,
    query: tenantMetricsQuery,
    answers: 'json',
    response: tenantMetrics,
    errors: [],
  },
  sandboxMetrics: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/metrics',
    needs: 'serving',
    repeats: 'safe',
    summary: 'What a sandbox uses now and used before; as SSE each sample and alert while it lives.',
    roles: READERS,
    params: z.strictObject({ id: sandboxId }),
    query: metricsQuery,
    answers: 'json-or-events',
    response: sandboxMetrics,
    events: metricEvent,
    errors: ['sandbox_not_found', 'wrong_node', 'too_many_streams'],
  },
  agentMetrics: {
    method: 'GET',
    path: '/v1/agents/{id}/metrics',
    needs: 'serving',
    repeats: 'safe',
    summary: 'The same of all sandboxes of an agent on this node, and together.',
    roles: READERS,
    params: z.strictObject({ id: agentId }),
    query: metricsQuery,
    answers: 'json',
    response: agentMetrics,
    errors: ['agent_not_found'],
  },
} as const satisfies Record<string, Route>
