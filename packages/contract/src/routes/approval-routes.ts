import { z } from 'zod'
import {
  approval,
  approvalDetail,
  approvalEvent,
  approvalId,
  approvalState,
  approveBody,
  rejectBody,
} from '../nouns/approval.ts'
import type { ErrorCode } from '../errors.ts'
import type { Role } from '../nouns/principal.ts'
import { cursor, page, pageLimit, READERS, type Route } from './route.ts'
import { agentId } from '../nouns/scalars.ts'
import { createWebhookBody, newWebhook, webhook, webhookId } from '../nouns/webhook.ts'

const ADMINS: readonly Role[] = ['admin']
/** Whoever may answer; what is critical needs an admin. */
const GUARDS: readonly Role[] = ['admin', 'operator']

const ofApproval = z.strictObject({ id: approvalId })
const ofWebhook = z.strictObject({ id: webhookId })

const REJECTS: readonly ErrorCode[] = ['approval_not_found', 'approval_ended', 'key_line_too_long']
const APPROVES: readonly ErrorCode[] = [...REJECTS, 'evidence_unavailable']

/** The part of the table of routes that is about people's answers, and about whom to tell. */
export const APPROVAL_ROUTES = {
  listApprovals: {
    method: 'GET',
    path: '/v1/approvals',
    needs: 'serving',
    repeats: 'safe',
    summary: 'List asks and what became of them, newest first; the pending ones unless a state is asked for.',
    roles: READERS,
    query: z.strictObject({
      state: approvalState.or(z.literal('all')).default('pending'),
      agent: agentId.optional(),
      limit: pageLimit,
      cursor,
    }),
    answers: 'json',
    response: page(approval),
    errors: [],
  },
  approvalEvents: {
    method: 'GET',
    path: '/v1/approvals/events',
    needs: 'serving',
    repeats: 'safe',
    summary: 'The pending asks as JSON; as SSE those, then every new one and every answer.',
    roles: READERS,
    query: z.strictObject({ agent: agentId.optional() }),
    answers: 'json-or-events',
    response: z.strictObject({ items: z.array(approval) }),
    events: approvalEvent,
    errors: [],
  },
  getApproval: {
    method: 'GET',
    path: '/v1/approvals/{id}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Look at one ask, with all that was asked for.',
    roles: READERS,
    params: ofApproval,
    answers: 'json',
    response: approvalDetail,
    errors: ['approval_not_found'],
  },
  approveApproval: {
    method: 'POST',
    path: '/v1/approvals/{id}/approve',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Let what was asked for happen. Never by who asked, nor by a key that is bound to agents.',
    roles: GUARDS,
    params: ofApproval,
    body: approveBody,
    answers: 'json',
    response: approval,
    errors: APPROVES,
    effect: 'approval.approve',
  },
  rejectApproval: {
    method: 'POST',
    path: '/v1/approvals/{id}/reject',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Say no. The same request is then denied until the ask would have expired.',
    roles: GUARDS,
    params: ofApproval,
    body: rejectBody,
    answers: 'json',
    response: approval,
    errors: REJECTS,
    effect: 'approval.reject',
  },
  revokeApproval: {
    method: 'POST',
    path: '/v1/approvals/{id}/revoke',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Take an approval back that is not used yet, or is used again and again.',
    roles: GUARDS,
    params: ofApproval,
    answers: 'json',
    response: approval,
    errors: ['approval_not_found', 'approval_ended'],
    effect: 'approval.revoke',
  },
  createWebhook: {
    method: 'POST',
    path: '/v1/webhooks',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Be told of events by HTTP. The answer holds the secret that signs them, once.',
    roles: ADMINS,
    body: createWebhookBody,
    answers: 'json',
    response: newWebhook,
    errors: ['too_many_webhooks', 'evidence_unavailable'],
    effect: 'webhook.create',
  },
  listWebhooks: {
    method: 'GET',
    path: '/v1/webhooks',
    needs: 'serving',
    repeats: 'safe',
    summary: 'List the webhooks of your tenant, oldest first.',
    roles: ADMINS,
    answers: 'json',
    response: z.strictObject({ items: z.array(webhook) }),
    errors: [],
  },
  getWebhook: {
    method: 'GET',
    path: '/v1/webhooks/{id}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Look at one webhook, and how its last delivery went.',
    roles: ADMINS,
    params: ofWebhook,
    answers: 'json',
    response: webhook,
    errors: ['webhook_not_found'],
  },
  removeWebhook: {
    method: 'DELETE',
    path: '/v1/webhooks/{id}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Tell it nothing any more.',
    roles: ADMINS,
    params: ofWebhook,
    answers: 'none',
    errors: ['webhook_not_found'],
    effect: 'webhook.remove',
  },
} as const satisfies Record<string, Route>
