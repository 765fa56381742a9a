import { z } from 'zod'
import type { ErrorCode } from '../errors.ts'
import { killBody, killReport, liftBody } from '../nouns/kill.ts'
import type { Role } from '../nouns/principal.ts'
import { flag, type Route } from './route.ts'

/** Whoever may take power away. */
const GUARDS: readonly Role[] = ['admin', 'operator']
const HIDDEN: readonly ErrorCode[] = ['sandbox_not_found', 'agent_not_found', 'tenant_not_found']

export const KILL_ROUTES = {
  turnKillswitchOn: {
    method: 'POST',
    path: '/v1/killswitch',
    needs: 'serving',
    repeats: 'safe',
    summary: 'End a sandbox, or all of an agent, a tenant or the server, and grant nothing there until it is lifted.',
    roles: GUARDS,
    body: killBody,
    answers: 'json',
    response: killReport,
    errors: HIDDEN,
    effect: 'kill.on',
  },
  listKillswitches: {
    method: 'GET',
    path: '/v1/killswitch',
    needs: 'serving',
    repeats: 'safe',
    summary: 'The killswitches that concern your tenant, newest first, with what each did.',
    roles: ['admin', 'operator', 'auditor'],
    query: z.strictObject({ all: flag.describe('Also those that were lifted.') }),
    answers: 'json',
    response: z.strictObject({ items: z.array(killReport) }),
    errors: [],
  },
  liftKillswitch: {
    method: 'POST',
    path: '/v1/killswitch/lift',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Turn a killswitch off. What it ended stays ended.',
    roles: ['admin'],
    body: liftBody,
    answers: 'json',
    response: killReport,
    errors: [...HIDDEN, 'kill_not_found', 'evidence_unavailable'],
    effect: 'kill.lift',
  },
} as const satisfies Record<string, Route>
