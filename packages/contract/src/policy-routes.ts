import { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import {
  backtest,
  backtestBody,
  evaluateBody,
  evaluation,
  guardianStatus,
  policy,
  policyCheck,
  policyScope,
  policyVersion,
  putPolicyBody,
  ruleInForce,
} from './guardian.ts'
import { policyDocument } from './policy.ts'
import type { Role } from './principal.ts'
import { cursor, page, pageLimit, READERS, type Route } from './route.ts'
import { name } from './scalars.ts'

const ADMINS: readonly Role[] = ['admin']
const ofPolicy = z.strictObject({ name })
const scope = policyScope.default('tenant').describe('That of the whole server needs a key of the platform.')
const ofScope = z.strictObject({ scope })
const WRITES: readonly ErrorCode[] = ['policy_invalid', 'stale_version', 'evidence_unavailable']

/** The part of the table of routes that is about whether: policies, and what Guardian makes of them. */
export const POLICY_ROUTES = {
  listPolicies: {
    method: 'GET',
    path: '/v1/policies',
    summary: 'List the policies of your tenant, or those of the whole server, each in its latest version.',
    roles: READERS,
    query: ofScope,
    answers: 'json',
    response: z.strictObject({ items: z.array(policyVersion) }),
    errors: [],
  },
  getPolicy: {
    method: 'GET',
    path: '/v1/policies/{name}',
    summary: 'Look at a policy, in its latest version or in another.',
    roles: READERS,
    params: ofPolicy,
    query: z.strictObject({ scope, version: z.coerce.number().int().min(1).optional() }),
    answers: 'json',
    response: policy,
    errors: ['policy_not_found'],
  },
  listPolicyVersions: {
    method: 'GET',
    path: '/v1/policies/{name}/versions',
    summary: 'List the versions of a policy, newest first.',
    roles: READERS,
    params: ofPolicy,
    query: z.strictObject({ scope, limit: pageLimit, cursor }),
    answers: 'json',
    response: page(policyVersion),
    errors: ['policy_not_found'],
  },
  putPolicy: {
    method: 'PUT',
    path: '/v1/policies/{name}',
    summary:
      'Give a policy a new version. Its examples must hold; it is in force at once, everywhere within two seconds.',
    roles: ADMINS,
    params: ofPolicy,
    query: ofScope,
    body: putPolicyBody,
    answers: 'json',
    response: policy,
    errors: [...WRITES, 'too_many_policies'],
    effect: 'policy.put',
  },
  removePolicy: {
    method: 'DELETE',
    path: '/v1/policies/{name}',
    summary: 'Take a policy out of force. Its versions are kept.',
    roles: ADMINS,
    params: ofPolicy,
    query: z.strictObject({ scope, expectedVersion: z.coerce.number().int().min(1).optional() }),
    answers: 'none',
    errors: ['policy_not_found', 'stale_version', 'evidence_unavailable'],
    effect: 'policy.remove',
  },
  checkPolicy: {
    method: 'POST',
    path: '/v1/policies/check',
    summary: 'Whether a policy would be accepted: compiles it and tries its examples. Nothing is stored.',
    // To compile what somebody wrote costs time, so it is for who may write.
    roles: ADMINS,
    body: z.strictObject({ document: policyDocument }),
    answers: 'json',
    response: policyCheck,
    errors: [],
  },
  evaluatePolicies: {
    method: 'POST',
    path: '/v1/policies/evaluate',
    summary: 'What Guardian would say if you did this, and by which rules. Nothing happens.',
    roles: READERS,
    body: evaluateBody,
    answers: 'json',
    response: evaluation,
    errors: ['agent_required', 'agent_not_found', 'sandbox_not_found', 'policy_invalid'],
  },
  backtestPolicy: {
    method: 'POST',
    path: '/v1/policies/backtest',
    summary: 'Replay recorded decisions of your tenant on this node against a draft: what would change.',
    roles: ADMINS,
    body: backtestBody,
    answers: 'json',
    response: backtest,
    errors: ['policy_invalid', 'evidence_unavailable'],
    effect: 'audit.read',
  },
  getGuardian: {
    method: 'GET',
    path: '/v1/guardian',
    summary: 'What decides: the policies in force for your tenant, how many rules of which sort, and other sources.',
    roles: READERS,
    answers: 'json',
    response: guardianStatus,
    errors: [],
  },
  listRules: {
    method: 'GET',
    path: '/v1/guardian/rules',
    summary: 'Every rule that is in force for your tenant, and those that are switched off.',
    roles: READERS,
    answers: 'json',
    response: z.strictObject({ items: z.array(ruleInForce) }),
    errors: [],
  },
} as const satisfies Record<string, Route>
