import { z } from 'zod'
import { APPROVAL_ROUTES } from './approval-routes.ts'
import { BUDGET_ROUTES } from './budget-routes.ts'
import { command, commandEvent, commandResult, runCommandBody, signalCommandBody } from './command.ts'
import { createdSandbox } from './created-sandbox.ts'
import { connection, connectSandboxBody } from './doors-api.ts'
import type { ErrorCode } from './errors.ts'
import { EVENT_ROUTES } from './event-routes.ts'
import { fileEntry } from './file.ts'
import { KILL_ROUTES } from './kill-routes.ts'
import { METRIC_ROUTES } from './metric-routes.ts'
import { POLICY_ROUTES } from './policy-routes.ts'
import { role, type Role } from './principal.ts'
import { auditChain, auditQuery, auditRecord, quarantinedHead, signedHead } from './record.ts'
import { CREATES, cursor, flag, LIVE, page, pageLimit, READERS, type Route, USERS } from './route.ts'
import {
  changeLimitsBody,
  createSandboxBody,
  extendSandboxBody,
  sandbox,
  sandboxState,
  terminateSandboxBody,
} from './sandbox.ts'
import { agentId, commandId, name, plainText, sandboxId, sandboxPath, id } from './scalars.ts'
import { SESSION_ROUTES } from './session-routes.ts'
import { WHO_ROUTES } from './who-routes.ts'

export { isReducing, type Route } from './route.ts'

const AUDITORS: readonly Role[] = ['admin', 'auditor']

const ofSandbox = z.strictObject({ id: sandboxId })
const ofCommand = z.strictObject({ id: sandboxId, command: commandId })
const atPath = z.strictObject({ path: sandboxPath })

const FILES: readonly ErrorCode[] = [
  ...LIVE,
  'invalid_path',
  'file_not_found',
  'permission_denied',
  'not_a_directory',
  'is_a_directory',
]

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
    summary: 'Write the body to the stdin of a command; end=true closes it after that.',
    roles: USERS,
    params: ofCommand,
    query: z.strictObject({ end: flag }),
    sends: 'bytes',
    answers: 'none',
    errors: [...LIVE, 'command_not_found', 'command_ended', 'stdin_closed'],
    effect: 'command.stdin',
  },
  readFile: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/files',
    summary: 'Download a file.',
    roles: USERS,
    params: ofSandbox,
    query: atPath,
    answers: 'bytes',
    errors: FILES,
    effect: 'file.read',
  },
  writeFile: {
    method: 'PUT',
    path: '/v1/sandboxes/{id}/files',
    summary: 'Upload a file: the body replaces its content, or is appended.',
    roles: USERS,
    params: ofSandbox,
    query: z.strictObject({ path: sandboxPath, append: flag }),
    sends: 'bytes',
    answers: 'json',
    response: z.strictObject({ path: z.string(), bytes: z.int() }),
    errors: [...FILES, 'disk_full', 'disk_failed', 'body_too_large'],
    effect: 'file.write',
  },
  removeFile: {
    method: 'DELETE',
    path: '/v1/sandboxes/{id}/files',
    summary: 'Remove a file or a directory.',
    roles: USERS,
    params: ofSandbox,
    query: z.strictObject({ path: sandboxPath, recursive: flag }),
    answers: 'none',
    errors: [...FILES, 'directory_not_empty'],
    effect: 'file.remove',
  },
  statFile: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/files/stat',
    summary: 'Look at a file without reading it; a link is not followed.',
    roles: USERS,
    params: ofSandbox,
    query: atPath,
    answers: 'json',
    response: fileEntry,
    errors: FILES,
    effect: 'file.list',
  },
  listFiles: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/files/list',
    summary: 'List a directory.',
    roles: USERS,
    params: ofSandbox,
    query: z.strictObject({ path: sandboxPath, limit: z.coerce.number().int().min(1).max(10_000).default(1000) }),
    answers: 'json',
    response: z.strictObject({ entries: z.array(fileEntry), truncated: z.boolean() }),
    errors: FILES,
    effect: 'file.list',
  },
  makeDirectory: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/files/mkdir',
    summary: 'Make a directory.',
    roles: USERS,
    params: ofSandbox,
    body: z.strictObject({ path: sandboxPath, parents: z.boolean().default(true) }),
    answers: 'none',
    errors: [...FILES, 'file_exists', 'disk_full', 'disk_failed'],
    effect: 'file.mkdir',
  },
  moveFile: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/files/move',
    summary: 'Move a file or a directory.',
    roles: USERS,
    params: ofSandbox,
    body: z.strictObject({ from: sandboxPath, to: sandboxPath }),
    answers: 'none',
    errors: [...FILES, 'file_exists', 'directory_not_empty'],
    effect: 'file.move',
  },
  ...SESSION_ROUTES,
  ...WHO_ROUTES,
  ...BUDGET_ROUTES,
  ...POLICY_ROUTES,
  ...KILL_ROUTES,
  ...APPROVAL_ROUTES,
  ...EVENT_ROUTES,
  ...METRIC_ROUTES,
  auditEvents: {
    method: 'GET',
    path: '/v1/audit/events',
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
    summary: 'A freshly signed head and the public key: keep it elsewhere, and truncation shows.',
    roles: AUDITORS,
    answers: 'json',
    response: z.strictObject({ head: signedHead, publicKey: z.string() }),
    errors: ['evidence_unavailable'],
  },
  auditQuarantine: {
    method: 'POST',
    path: '/v1/audit/quarantine',
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
    summary: 'The chains of your tenant on all nodes that share a store: where each is, and its latest head.',
    roles: AUDITORS,
    answers: 'json',
    response: z.strictObject({ items: z.array(auditChain) }),
    errors: [],
  },
  whoami: {
    method: 'GET',
    path: '/v1/whoami',
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
    summary: 'The process lives.',
    roles: 'public',
    answers: 'json',
    response: z.strictObject({ status: z.literal('ok') }),
    errors: [],
  },
  ready: {
    method: 'GET',
    path: '/readyz',
    summary: 'It can create sandboxes; a warning when the disk of the host is near its reserve.',
    roles: 'public',
    answers: 'json',
    response: z.strictObject({
      status: z.literal('ready'),
      warnings: z.array(z.enum(['host_disk_low', 'evidence_broken'])).optional(),
    }),
    errors: ['not_ready'],
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    summary: 'Prometheus metrics.',
    roles: ['admin', 'operator'],
    scope: 'platform',
    answers: 'text',
    errors: [],
  },
  openapi: {
    method: 'GET',
    path: '/openapi.json',
    summary: 'This API as OpenAPI 3.1.',
    roles: 'public',
    answers: 'json',
    errors: [],
  },
  docs: { method: 'GET', path: '/docs', summary: 'This API to read.', roles: 'public', answers: 'text', errors: [] },
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
