import { z } from 'zod'
import { APPROVAL_ROUTES } from './approval-routes.ts'
import { ARTIFACT_ROUTES } from './artifact-routes.ts'
import { TOOL_ROUTES } from './tool-routes.ts'
import { AUDIT_ROUTES } from './audit-routes.ts'
import { BUDGET_ROUTES } from './budget-routes.ts'
import { command, commandEvent, commandResult, runCommandBody, signalCommandBody } from '../nouns/command.ts'
import { createdSandbox } from '../nouns/created-sandbox.ts'
import { connection, connectSandboxBody } from '../host/doors-api.ts'
import type { ErrorCode } from '../errors.ts'
import { EVENT_ROUTES } from './event-routes.ts'
import { FILE_ROUTES } from './file-routes.ts'
import { JOB_ROUTES } from './job-routes.ts'
import { KILL_ROUTES } from './kill-routes.ts'
import { MODEL_API_ROUTES } from './model-routes.ts'
import { METRIC_ROUTES } from './metric-routes.ts'
import { POLICY_ROUTES } from './policy-routes.ts'
import { RUN_ROUTES } from './run-routes.ts'
import { role } from '../nouns/principal.ts'
import { CREATES, cursor, flag, LIVE, page, pageLimit, READERS, type Route, USERS } from './route.ts'
import {
  changeLimitsBody,
  createSandboxBody,
  extendSandboxBody,
  sandbox,
  sandboxState,
  terminateSandboxBody,
} from '../nouns/sandbox.ts'
import { agentId, commandId, name, plainText, sandboxId } from '../nouns/scalars.ts'
import { SESSION_ROUTES } from './session-routes.ts'
import { WHO_ROUTES } from './who-routes.ts'
import { WORKTREE_ROUTES } from './worktree-routes.ts'

export { isReducing, type Needs, type Route } from './route.ts'

const ofSandbox = z.strictObject({ id: sandboxId })
const ofCommand = z.strictObject({ id: sandboxId, command: commandId })

/** What may go wrong when one is stopped where it stands, or let go. */
const PAUSES: readonly ErrorCode[] = [
  'guest_lost',
  'isolation_unavailable',
  'data_plane_unavailable',
  'evidence_unavailable',
]

/** The one table of routes: server, OpenAPI, SDK and CLI help are made from it. */
export const ROUTES = {
  createSandbox: {
    method: 'POST',
    path: '/v1/sandboxes',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Create a sandbox and wait until it is active.',
    roles: USERS,
    body: createSandboxBody,
    answers: 'json',
    response: createdSandbox,
    errors: [...CREATES, 'name_taken'],
    effect: 'sandbox.create',
  },
  listSandboxes: {
    method: 'GET',
    path: '/v1/sandboxes',
    needs: 'serving',
    repeats: 'safe',
    summary: 'List sandboxes, newest first; the living ones unless a state is asked for.',
    roles: READERS,
    query: z.strictObject({
      state: sandboxState.or(z.literal('all')).optional(),
      agent: agentId.optional(),
      name: name.optional(),
      label: plainText.max(256).optional().describe('key=value; give several separated by commas.'),
      limit: pageLimit,
      cursor,
    }),
    answers: 'json',
    response: page(sandbox),
    errors: [],
  },
  getSandbox: {
    method: 'GET',
    path: '/v1/sandboxes/{id}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Look at one sandbox.',
    roles: READERS,
    params: ofSandbox,
    answers: 'json',
    response: sandbox,
    errors: ['sandbox_not_found'],
  },
  getOrCreateSandbox: {
    method: 'PUT',
    path: '/v1/sandboxes/by-name/{name}',
    needs: 'granting',
    repeats: 'safe',
    summary: 'The living sandbox of that name, or a new one.',
    roles: USERS,
    params: z.strictObject({ name }),
    body: createSandboxBody.omit({ name: true }),
    answers: 'json',
    response: createdSandbox,
    errors: [...CREATES, 'wrong_node'],
    effect: 'sandbox.create',
  },
  connectSandbox: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/connect',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Give a sandbox a new token for its door, and say what a program inside needs to reach us.',
    roles: USERS,
    params: ofSandbox,
    body: connectSandboxBody,
    answers: 'json',
    response: connection,
    errors: [...LIVE, 'agent_not_approved', 'agent_suspended', 'stale_generation', 'door_unavailable'],
    effect: 'sandbox.connect',
  },
  extendSandbox: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/extend',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Let a sandbox live longer, never past its maximum lifetime.',
    roles: USERS,
    params: ofSandbox,
    body: extendSandboxBody,
    answers: 'json',
    response: sandbox,
    errors: LIVE,
    effect: 'sandbox.extend',
  },
  changeLimits: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/limits',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Change limits of a living sandbox, upward or downward; what is absent stays. All of them or none.',
    roles: USERS,
    params: ofSandbox,
    body: changeLimitsBody,
    answers: 'json',
    response: sandbox,
    errors: [
      ...LIVE.filter((code) => code !== 'sandbox_paused'),
      'budget_exhausted',
      'capacity_exhausted',
      'host_disk_full',
      'limit_fixed',
      'limit_in_use',
      'isolation_unavailable',
    ],
    effect: 'sandbox.limit',
  },
  pauseSandbox: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/pause',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Stop the processes of a sandbox where they stand; its time stops too. Pausing it again answers the same.',
    roles: USERS,
    params: ofSandbox,
    answers: 'json',
    response: sandbox,
    errors: ['sandbox_not_found', 'sandbox_not_active', 'sandbox_ended', 'wrong_node', ...PAUSES],
    effect: 'sandbox.pause',
  },
  resumeSandbox: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/resume',
    needs: 'granting',
    repeats: 'safe',
    summary: 'Let a paused sandbox go on, with the time that it had left. Resuming it again answers the same.',
    roles: USERS,
    params: ofSandbox,
    answers: 'json',
    response: sandbox,
    errors: ['sandbox_not_found', 'sandbox_not_active', 'sandbox_ended', 'wrong_node', 'killed', ...PAUSES],
    effect: 'sandbox.resume',
  },
  terminateSandbox: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/terminate',
    needs: 'serving',
    repeats: 'safe',
    summary: 'End a sandbox. Ending it again answers the same.',
    roles: USERS,
    params: ofSandbox,
    body: terminateSandboxBody,
    answers: 'json',
    response: sandbox,
    errors: ['sandbox_not_found', 'wrong_node', 'data_plane_unavailable'],
    effect: 'sandbox.terminate',
  },
  runCommand: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/commands',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Run a command; answers when it has ended, as SSE while it runs, or at once with background.',
    roles: USERS,
    params: ofSandbox,
    body: runCommandBody,
    answers: 'json-or-events',
    response: commandResult,
    events: commandEvent,
    errors: [
      ...LIVE,
      'executable_not_found',
      'too_many_commands',
      'host_disk_full',
      'file_not_found',
      'not_a_directory',
      'permission_denied',
    ],
    effect: 'command.run',
  },
  listCommands: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/commands',
    needs: 'serving',
    repeats: 'safe',
    summary: 'List the commands of a sandbox, newest first.',
    roles: READERS,
    params: ofSandbox,
    query: z.strictObject({ limit: pageLimit, cursor }),
    answers: 'json',
    response: page(command),
    errors: ['sandbox_not_found'],
  },
  getCommand: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/commands/{command}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Look at one command.',
    roles: READERS,
    params: ofCommand,
    answers: 'json',
    response: command,
    errors: ['sandbox_not_found', 'command_not_found'],
  },
  commandOutput: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/commands/{command}/output',
    needs: 'serving',
    repeats: 'safe',
    summary: 'The output of a command from an offset on: what there is as JSON, or SSE until it ends.',
    roles: USERS,
    params: ofCommand,
    query: z.strictObject({ from: z.coerce.number().int().min(0).default(0) }),
    answers: 'json-or-events',
    response: commandResult,
    events: commandEvent,
    errors: [...LIVE, 'command_not_found'],
  },
  fullCommandOutput: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/commands/{command}/output/full',
    needs: 'serving',
    repeats: 'safe',
    summary:
      'All that a command said which went over its cap, both streams as they came; for a time, also when the sandbox is gone.',
    roles: USERS,
    params: ofCommand,
    answers: 'bytes',
    errors: ['sandbox_not_found', 'command_not_found', 'output_not_kept', 'wrong_node', 'data_plane_unavailable'],
  },
  signalCommand: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/commands/{command}/signal',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Send a signal to a command; SIGKILL ends its whole tree.',
    roles: USERS,
    params: ofCommand,
    body: signalCommandBody,
    answers: 'none',
    errors: [...LIVE, 'command_not_found', 'command_ended'],
    effect: 'command.signal',
  },
  writeStdin: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/commands/{command}/stdin',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Write the body to the stdin of a command; end=true closes it after that.',
    roles: USERS,
    params: ofCommand,
    query: z.strictObject({ end: flag }),
    sends: 'bytes',
    answers: 'none',
    errors: [...LIVE, 'command_not_found', 'command_ended', 'stdin_closed'],
    effect: 'command.stdin',
  },
  ...FILE_ROUTES,
  ...WORKTREE_ROUTES,
  ...SESSION_ROUTES,
  ...JOB_ROUTES,
  ...ARTIFACT_ROUTES,
  ...RUN_ROUTES,
  ...WHO_ROUTES,
  ...BUDGET_ROUTES,
  ...POLICY_ROUTES,
  ...KILL_ROUTES,
  ...APPROVAL_ROUTES,
  ...EVENT_ROUTES,
  ...METRIC_ROUTES,
  ...MODEL_API_ROUTES,
  ...TOOL_ROUTES,
  ...AUDIT_ROUTES,
  whoami: {
    method: 'GET',
    path: '/v1/whoami',
    needs: 'nothing',
    repeats: 'safe',
    summary: 'Who the server takes you for.',
    roles: READERS,
    answers: 'json',
    response: z.strictObject({
      actor: z.string(),
      tenant: z.string(),
      role,
      agents: z.array(z.string()).nullable(),
      platform: z.boolean(),
    }),
    errors: [],
  },
  health: {
    method: 'GET',
    path: '/healthz',
    needs: 'nothing',
    repeats: 'safe',
    summary: 'The process lives.',
    roles: 'public',
    answers: 'json',
    response: z.strictObject({ status: z.literal('ok') }),
    errors: [],
  },
  ready: {
    method: 'GET',
    path: '/readyz',
    needs: 'nothing',
    repeats: 'safe',
    summary: 'It can create sandboxes; warnings about the disk of the host and the evidence of tenants.',
    roles: 'public',
    answers: 'json',
    response: z.strictObject({
      status: z.literal('ready'),
      warnings: z.array(z.enum(['host_disk_low', 'evidence_broken', 'evidence_unavailable'])).optional(),
    }),
    errors: ['not_ready'],
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    needs: 'nothing',
    repeats: 'safe',
    summary: 'Prometheus metrics.',
    roles: ['admin', 'operator'],
    scope: 'platform',
    answers: 'text',
    errors: [],
  },
  openapi: {
    method: 'GET',
    path: '/openapi.json',
    needs: 'nothing',
    repeats: 'safe',
    summary: 'This API as OpenAPI 3.1.',
    roles: 'public',
    answers: 'json',
    errors: [],
  },
  docs: {
    method: 'GET',
    path: '/docs',
    needs: 'nothing',
    repeats: 'safe',
    summary: 'This API to read.',
    roles: 'public',
    answers: 'text',
    errors: [],
  },
} as const satisfies Record<string, Route>

export type RouteName = keyof typeof ROUTES

type InputOf<T> = T extends z.ZodType ? z.input<T> : never
/** What a caller of a route gives: path parameters, query and body, each only where the route has it. */
export type RouteInput<N extends RouteName> = (typeof ROUTES)[N] extends infer R
  ? (R extends { params: infer P } ? InputOf<P> : unknown) &
      (R extends { query: infer Q } ? InputOf<Q> : unknown) &
      (R extends { body: infer B } ? { readonly body: InputOf<B> } : unknown)
  : never
export type RouteOutput<N extends RouteName> = (typeof ROUTES)[N] extends { response: infer S extends z.ZodType }
  ? z.output<S>
  : void

/** The errors that every route may answer whose effect Guardian is asked about. */
export const GUARDED_ERRORS: readonly ErrorCode[] = ['policy_denied', 'approval_required', 'killed']

/** The errors that every route may answer, but for `too_many_requests`: what takes away is never too much. */
export const COMMON_ERRORS: readonly ErrorCode[] = [
  'invalid_request',
  'unauthenticated',
  'forbidden',
  'too_many_requests',
  'identity_unavailable',
  'not_ready',
  'internal',
]
