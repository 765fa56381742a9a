import { z } from 'zod'
import { INSIDE } from '../guest/boot.ts'
import { tokenScope } from './sandbox-token.ts'
import { agentId, id, sandboxId, time } from '../nouns/scalars.ts'

/** Every way out of a sandbox that there is. A permit lists those that a sandbox has. */
export const DOORS = ['control'] as const
export const doorName = z.enum(DOORS)
export type DoorName = z.infer<typeof doorName>

/** The socket of the door `control`, in its directory. */
export const CONTROL_SOCKET = 'airlock.sock'

/**
 * What the doors and the control plane say to each other: HTTP with JSON over two unix sockets, each of which only the
 * other can open. Errors are `{error: {code, message}}` with registry codes.
 *
 * | at the doors | body → answer |
 * |---|---|
 * | `GET /doors` | → `openDoors`; the sandboxes that have open doors |
 * | `PUT /doors/:sandbox` | `openDoorsRequest` → `{}`; idempotent |
 * | `DELETE /doors/:sandbox` | → `{}`; idempotent: its doors are closed and their connections cut |
 *
 * | at the control plane | body → answer |
 * |---|---|
 * | `POST /control` | `controlCall` → `self` or `renewedToken`, by what was asked |
 */
export const openDoors = z.strictObject({ sandboxes: z.array(sandboxId) })
export const openDoorsRequest = z.strictObject({ doors: z.array(doorName).max(DOORS.length) })

/** What came in by a door. The doors say which sandbox: the one whose socket it was. */
export const controlCall = z.strictObject({
  sandbox: sandboxId,
  token: z.string().max(8192).nullable(),
  ask: tokenScope,
})
export type ControlCall = z.infer<typeof controlCall>

/** Who the program inside is, to us. */
export const self = z.strictObject({
  sandbox: sandboxId,
  tenant: id,
  agent: agentId,
  generation: z.int(),
  scopes: z.array(tokenScope),
  expiresAt: time.describe('Of the token.'),
  sandboxExpiresAt: time,
})
export type Self = z.infer<typeof self>

export const renewedToken = z.strictObject({ token: z.string(), lifeMs: z.int(), expiresAt: time })
export type RenewedToken = z.infer<typeof renewedToken>

/** What programs inside are told: who their sandbox is, and how its door is reached if it has one. */
export function doorEnv(of: {
  readonly sandbox: string
  readonly agent: string
  readonly doors: readonly DoorName[]
}): Readonly<Record<string, string>> {
  const door = { AIRLOCK_SOCKET: INSIDE.doorSocket, AIRLOCK_TOKEN_FILE: INSIDE.token }
  return {
    ...(of.doors.includes('control') ? door : {}),
    AIRLOCK_SANDBOX_ID: of.sandbox,
    AIRLOCK_AGENT_ID: of.agent,
  }
}

/** What a program inside needs to reach us. */
export const connection = z.strictObject({
  sandbox: sandboxId,
  agent: agentId,
  generation: z.int(),
  socket: z.string().describe('Inside: a unix socket that speaks HTTP.'),
  tokenFile: z.string().describe('Inside: the token that is good now; read it at each use.'),
  env: z.record(z.string(), z.string()).describe('What programs inside are started with.'),
  scopes: z.array(tokenScope),
  expiresAt: time.describe('When the token that was just given ends, unless it is renewed before.'),
})
export type Connection = z.infer<typeof connection>

export const connectSandboxBody = z.strictObject({
  revoke: z.boolean().default(false).describe('Every token that was given out before opens nothing from now on.'),
})
export type ConnectSandboxBody = z.infer<typeof connectSandboxBody>
