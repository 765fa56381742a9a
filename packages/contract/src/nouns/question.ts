import { z } from 'zod'
import { tier } from './decision.ts'
import { point } from '../points.ts'
import { askingRole } from './principal.ts'
import { grantMode } from './grant.ts'
import { limits } from './sandbox.ts'
import { findingKind } from './files/worktree.ts'

/** What somebody wants to do, as far as a rule can look at it: words, never handles. */
export const operation = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('command'),
    argv: z.array(z.string()),
    cwd: z.string(),
    /** Names alone. */
    env: z.array(z.string()),
    timeoutMs: z.number(),
    /** Absent without a cap. */
    cpuTimeMs: z.number().optional(),
  }),
  z.strictObject({
    kind: z.literal('code'),
    runtime: z.string(),
    code: z.string(),
    /** Names alone. */
    env: z.array(z.string()).optional(),
    timeoutMs: z.number(),
  }),
  z.strictObject({
    kind: z.literal('file'),
    action: z.enum(['read', 'write', 'list', 'mkdir', 'move', 'remove']),
    path: z.string(),
    /** Where it is moved to. */
    to: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal('mount'), path: z.string(), mode: grantMode }),
  z.strictObject({
    kind: z.literal('sandbox'),
    template: z.string(),
    tier,
    limits,
    labels: z.record(z.string(), z.string()),
    lifetimeMs: z.number(),
    /** Names alone. */
    env: z.array(z.string()).optional(),
    mounts: z.array(z.strictObject({ path: z.string(), mode: grantMode })),
  }),
  z.strictObject({
    kind: z.literal('network'),
    /** A name in lower case, or an address in its usual spelling. */
    host: z.string(),
    port: z.int(),
    /** `tls`: by CONNECT, with a ClientHello that names the host. `raw`: by CONNECT, whatever bytes. Absent: tls. */
    traffic: z.enum(['tls', 'http', 'raw']).optional(),
  }),
  z.strictObject({
    kind: z.literal('artifact'),
    action: z.enum(['collect', 'upload', 'download', 'link']),
    name: z.string(),
    /** Null when it is not known before. */
    bytes: z.number().nullable(),
    /** How many are taken by the same request. */
    count: z.number(),
  }),
  z.strictObject({ kind: z.literal('model'), model: z.string() }),
  z.strictObject({
    kind: z.literal('tool'),
    tool: z.string(),
    /** Of the call. */
    params: z.record(z.string(), z.json()).optional(),
    /** Method and URL, as they will be sent. */
    request: z.string().optional(),
  }),
  /** Work of a sandbox that is to leave. */
  z.strictObject({
    kind: z.literal('worktree'),
    source: z.string(),
    format: z.enum(['branch', 'patch']),
    branch: z.string().nullable(),
    /** SHA-256 over all that would leave. */
    seal: z.string(),
    changes: z.int(),
    findings: z.array(z.strictObject({ kind: findingKind, path: z.string(), detail: z.string() })),
  }),
  /** Everything else that has an effect: what is asked for, as its record shows it. */
  z.strictObject({ kind: z.literal('other'), payload: z.record(z.string(), z.json()) }),
])
export type Operation = z.infer<typeof operation>

/** What Guardian is asked: the input of every source of decisions, ours and OPA's alike. */
export const question = z.strictObject({
  point,
  tenant: z.string(),
  /** Who asks, as evidence names it. */
  actor: z.string(),
  role: askingRole,
  agent: z.string().nullable(),
  sandbox: z.string().nullable(),
  /** The sandbox was created for one run. Absent: no. */
  ephemeral: z.boolean().optional(),
  operation,
})
export type Question = z.infer<typeof question>
