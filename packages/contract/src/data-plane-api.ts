import { z } from 'zod'
import { commandState, signalName } from './command.ts'
import { effectiveIsolation } from './sandbox.ts'
import { commandId, envVars, sandboxId, sandboxPath } from './scalars.ts'

/**
 * What control plane and data plane say to each other: HTTP over a unix socket that only the control plane's uid can
 * open. Bodies are JSON unless a line says bytes. Errors are `{error: {code, message}}` with registry codes.
 *
 * | method and path | body → answer |
 * |---|---|
 * | `GET /health` | → `dataPlaneHealth` |
 * | `GET /sandboxes` | → `{sandboxes: nodeSandbox[]}` |
 * | `POST /sandboxes` | `{permit}` → `startedSandbox`; the sandbox is up and its guest attached |
 * | `DELETE /sandboxes/:id` | → `stoppedSandbox`; idempotent: an unknown id is already gone |
 * | `POST /sandboxes/:id/commands` | `nodeCommandSpec` → `nodeCommand`; an id that exists is answered as it is |
 * | `GET /sandboxes/:id/commands` | → `{commands: nodeCommand[]}` |
 * | `GET /sandboxes/:id/commands/:cid` | → `nodeCommand` |
 * | `GET /sandboxes/:id/commands/:cid/wait` | → `nodeCommand` once it has ended and its output is complete |
 * | `GET /sandboxes/:id/commands/:cid/output?from=N` | → bytes: data frames of the guest codec, then one `nodeCommand` message frame when it has ended |
 * | `POST /sandboxes/:id/commands/:cid/signal` | `{signal}` → `{}` |
 * | `POST /sandboxes/:id/commands/:cid/stdin?end=true` | bytes → `{}` |
 * | `GET /sandboxes/:id/files?path=P` | → bytes; the header `x-size` is the size at open |
 * | `PUT /sandboxes/:id/files?path=P&mode=truncate` | bytes → `{bytes}` |
 * | `POST /sandboxes/:id/files` | `fileOperation` → the result of the guest |
 */
export const dataPlaneHealth = z.strictObject({
  node: z.string(),
  backend: z.string(),
  bootId: z.string(),
  capacity: z.int(),
})
export type DataPlaneHealth = z.infer<typeof dataPlaneHealth>

/** `lost`: its guest died or its host restarted; only remains to be destroyed. */
export const nodeSandbox = z.strictObject({
  id: sandboxId,
  state: z.enum(['starting', 'running', 'stopping', 'lost']),
  lostReason: z.enum(['guest_lost', 'host_restarted', 'max_lifetime']).nullable(),
  runningCommands: z.int(),
})
export type NodeSandbox = z.infer<typeof nodeSandbox>

export const startSandboxRequest = z.strictObject({ permit: z.string().max(1024 * 1024) })
export const startedSandbox = z.strictObject({ id: sandboxId, isolation: effectiveIsolation })
export type StartedSandbox = z.infer<typeof startedSandbox>

export const resourceUsage = z.strictObject({
  cpuMs: z.number().nullable(),
  memoryPeakBytes: z.number().nullable(),
})
export type ResourceUsage = z.infer<typeof resourceUsage>
export const stoppedSandbox = z.strictObject({ existed: z.boolean(), usage: resourceUsage.nullable() })
export type StoppedSandbox = z.infer<typeof stoppedSandbox>

export const nodeCommandSpec = z.strictObject({
  id: commandId,
  argv: z.array(z.string()).min(1),
  cwd: sandboxPath,
  env: envVars,
  stdin: z.union([z.strictObject({ text: z.string() }), z.enum(['none', 'open'])]),
  timeoutMs: z.int(),
  maxOutputBytes: z.int(),
})
export type NodeCommandSpec = z.infer<typeof nodeCommandSpec>

export const nodeCommand = z.strictObject({
  id: commandId,
  state: commandState,
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  timedOut: z.boolean(),
  truncated: z.boolean(),
  outputBytes: z.int(),
  /** Epoch milliseconds by the host's clock. */
  startedAt: z.number(),
  endedAt: z.number().nullable(),
})
export type NodeCommand = z.infer<typeof nodeCommand>

export const signalRequest = z.strictObject({ signal: signalName })

export const fileOperation = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('file.stat'), path: sandboxPath }),
  z.strictObject({ op: z.literal('file.list'), path: sandboxPath, limit: z.int() }),
  z.strictObject({ op: z.literal('file.mkdir'), path: sandboxPath, parents: z.boolean() }),
  z.strictObject({ op: z.literal('file.move'), from: sandboxPath, to: sandboxPath }),
  z.strictObject({ op: z.literal('file.remove'), path: sandboxPath, recursive: z.boolean() }),
])
export type FileOperation = z.infer<typeof fileOperation>
