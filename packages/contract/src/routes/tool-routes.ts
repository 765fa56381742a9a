import { z } from 'zod'
import type { Role } from '../nouns/principal.ts'
import { name } from '../nouns/scalars.ts'
import { putSecretBody, sealKey, secret } from '../nouns/tools/secret.ts'
import { putToolBody, tool, toolName } from '../nouns/tools/tool.ts'
import { READERS, type Route } from './route.ts'

const ADMINS: readonly Role[] = ['admin']
const ofSecret = z.strictObject({ name })
const ofTool = z.strictObject({ name: toolName })

/** The part of the table of routes that is about services that sandboxes call, and their credentials. */
export const TOOL_ROUTES = {
  getSealKey: {
    method: 'GET',
    path: '/v1/secrets/key',
    needs: 'serving',
    repeats: 'safe',
    summary: 'The public key to which clients seal secrets. Only the process that sends them has the private one.',
    roles: ADMINS,
    answers: 'json',
    response: sealKey,
    errors: ['not_ready'],
  },
  listSecrets: {
    method: 'GET',
    path: '/v1/secrets',
    needs: 'serving',
    repeats: 'safe',
    summary: 'List the secrets of your tenant. No route answers a value.',
    roles: ADMINS,
    answers: 'json',
    response: z.strictObject({ items: z.array(secret) }),
    errors: [],
  },
  putSecret: {
    method: 'PUT',
    path: '/v1/secrets/{name}',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Store a sealed secret, or give it a new value: no call starts with the old one after a second.',
    roles: ADMINS,
    params: ofSecret,
    body: putSecretBody,
    answers: 'json',
    response: secret,
    errors: ['too_many_secrets', 'secret_unavailable', 'evidence_unavailable'],
    effect: 'secret.put',
  },
  removeSecret: {
    method: 'DELETE',
    path: '/v1/secrets/{name}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Remove a secret. Tools that name it are refused from then on.',
    roles: ADMINS,
    params: ofSecret,
    answers: 'none',
    errors: ['secret_not_found'],
    effect: 'secret.remove',
  },
  listTools: {
    method: 'GET',
    path: '/v1/tools',
    needs: 'serving',
    repeats: 'safe',
    summary: 'List the tools of your tenant.',
    roles: READERS,
    answers: 'json',
    response: z.strictObject({ items: z.array(tool) }),
    errors: [],
  },
  getTool: {
    method: 'GET',
    path: '/v1/tools/{name}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Look at one tool.',
    roles: READERS,
    params: ofTool,
    answers: 'json',
    response: tool,
    errors: ['tool_not_found'],
  },
  putTool: {
    method: 'PUT',
    path: '/v1/tools/{name}',
    needs: 'granting',
    repeats: 'unsafe',
    summary: 'Describe a tool, or give it another description. No sandbox may call it until a rule names it.',
    roles: ADMINS,
    params: ofTool,
    body: putToolBody,
    answers: 'json',
    response: tool,
    errors: ['too_many_tools', 'evidence_unavailable'],
    effect: 'tool.put',
  },
  removeTool: {
    method: 'DELETE',
    path: '/v1/tools/{name}',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Remove a tool.',
    roles: ADMINS,
    params: ofTool,
    answers: 'none',
    errors: ['tool_not_found'],
    effect: 'tool.remove',
  },
} as const satisfies Record<string, Route>
