import { z } from 'zod'
import type { Role } from '../nouns/principal.ts'
import { auditChain, auditQuery, auditRecord, quarantinedHead, signedHead } from '../nouns/record.ts'
import { page, type Route } from './route.ts'
import { id } from '../nouns/scalars.ts'

const AUDITORS: readonly Role[] = ['admin', 'auditor']

/** The part of the table of routes that reads evidence, and looks after it. */
export const AUDIT_ROUTES = {
  auditEvents: {
    method: 'GET',
    path: '/v1/audit/events',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Evidence of your tenant on this node, newest first.',
    roles: AUDITORS,
    query: auditQuery,
    answers: 'json',
    response: page(auditRecord),
    errors: ['evidence_unavailable'],
    effect: 'audit.read',
  },
  auditExport: {
    method: 'GET',
    path: '/v1/audit/export',
    needs: 'serving',
    repeats: 'safe',
    summary:
      'The whole chain of your tenant on this node as NDJSON: records and signed heads, ending with a signed head.',
    roles: AUDITORS,
    answers: 'lines',
    errors: ['evidence_unavailable'],
    effect: 'audit.read',
  },
  auditHead: {
    method: 'GET',
    path: '/v1/audit/head',
    needs: 'serving',
    repeats: 'safe',
    summary: 'A freshly signed head and the public key: keep it elsewhere, and truncation shows.',
    roles: AUDITORS,
    answers: 'json',
    response: z.strictObject({ head: signedHead, publicKey: z.string() }),
    errors: ['evidence_unavailable'],
  },
  auditQuarantine: {
    method: 'POST',
    path: '/v1/audit/quarantine',
    needs: 'serving',
    repeats: 'unsafe',
    summary:
      'Set aside what does not verify of the chain of a tenant on this node, kept and stated with a signature; the chain goes on.',
    roles: ['admin'],
    scope: 'platform',
    body: z.strictObject({ tenant: id.describe('`system` is the chain of what belongs to no tenant.') }),
    answers: 'json',
    response: quarantinedHead,
    errors: ['tenant_not_found', 'evidence_unavailable'],
    effect: 'audit.quarantine',
  },
  auditChains: {
    method: 'GET',
    path: '/v1/audit/chains',
    needs: 'serving',
    repeats: 'safe',
    summary: 'The chains of your tenant on all nodes that share a store: where each is, and its latest head.',
    roles: AUDITORS,
    answers: 'json',
    response: z.strictObject({ items: z.array(auditChain) }),
    errors: [],
  },
} as const satisfies Record<string, Route>
