import { z } from 'zod'
import {
  agentEventQuery,
  agentSummary,
  auditStats,
  eventPage,
  eventQuery,
  sandboxEventQuery,
  streamedEvent,
  summaryQuery,
} from '../nouns/event.ts'
import type { Role } from '../nouns/principal.ts'
import { READERS, type Route } from './route.ts'
import { agentId, sandboxId } from '../nouns/scalars.ts'

const AUDITORS: readonly Role[] = ['admin', 'auditor']

const streams = {
  method: 'GET',
  needs: 'serving',
  repeats: 'safe',
  roles: READERS,
  answers: 'json-or-events',
  response: eventPage,
  events: streamedEvent,
  effect: 'audit.read',
} as const

/** The part of the table of routes that tells what happens and what happened, made of the evidence. */
export const EVENT_ROUTES = {
  events: {
    ...streams,
    path: '/v1/events',
    summary:
      'What happens on this node, as SSE from now on or after a record; without SSE the latest, or a page after a record.',
    query: eventQuery,
    errors: ['too_many_streams', 'evidence_unavailable'],
  },
  agentEvents: {
    ...streams,
    path: '/v1/agents/{id}/events',
    summary: 'The same of one agent.',
    params: z.strictObject({ id: agentId }),
    query: agentEventQuery,
    errors: ['agent_not_found', 'too_many_streams', 'evidence_unavailable'],
  },
  sandboxEvents: {
    ...streams,
    path: '/v1/sandboxes/{id}/events',
    summary: 'The same of one sandbox.',
    params: z.strictObject({ id: sandboxId }),
    query: sandboxEventQuery,
    errors: ['sandbox_not_found', 'too_many_streams', 'evidence_unavailable'],
  },
  agentSummary: {
    method: 'GET',
    path: '/v1/agents/{id}/summary',
    needs: 'serving',
    repeats: 'safe',
    summary: 'What an agent did on this node in the last days: operations, failures, durations, resources, trend.',
    roles: READERS,
    params: z.strictObject({ id: agentId }),
    query: summaryQuery,
    answers: 'json',
    response: agentSummary,
    errors: ['agent_not_found', 'evidence_unavailable'],
  },
  auditStats: {
    method: 'GET',
    path: '/v1/audit/stats',
    needs: 'serving',
    repeats: 'safe',
    summary:
      'How much evidence of your tenant this node has, how fast it grows, whether it verifies, what was dropped.',
    roles: AUDITORS,
    answers: 'json',
    response: auditStats,
    errors: ['evidence_unavailable'],
  },
} as const satisfies Record<string, Route>
