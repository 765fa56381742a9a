import { z } from 'zod'
import { DEFAULT_AGENT } from './agent.ts'
import { tier } from './decision.ts'
import { DEFAULTS } from '../defaults.ts'
import { mount } from './grant.ts'
import { doorName, doorNames } from '../host/doors-api.ts'
import { modelLimits, modelNames, someModelLimits } from './sandbox-models.ts'
import { agentId, envVars, id, labels, name, sandboxId, time, within } from './scalars.ts'
import { worktreeBody } from './files/worktree.ts'

/** A bad transition is an error with both names in it; `sandboxes/lifecycle.ts` owns the table of legal moves. */
export const SANDBOX_STATES = ['creating', 'active', 'paused', 'stopping', 'stopped', 'error'] as const
export const sandboxState = z.enum(SANDBOX_STATES)
export type SandboxState = z.infer<typeof sandboxState>

export const END_REASONS = [
  'terminated',
  'ttl',
  'idle',
  'max_lifetime',
  'shutdown',
  'guest_lost',
  'host_restarted',
  'create_failed',
  'create_interrupted',
  'agent_revoked',
  'agent_suspended',
  'agent_deleted',
  'agent_stale',
  'grant_revoked',
  'budget_exhausted',
  'paused_too_long',
  'killed',
  'pids_exhausted',
  'out_of_memory',
  'disk_exhausted',
  'cpu_exhausted',
] as const
export const endReason = z.enum(END_REASONS)
export type EndReason = z.infer<typeof endReason>

const limitFields = {
  memoryBytes: within(DEFAULTS.memoryBytes)
    .int()
    .describe('Of user code, memory file systems included. Never swapped.'),
  cpus: within(DEFAULTS.cpus),
  pids: within(DEFAULTS.pids).int().describe('Processes and threads.'),
  diskBytes: within(DEFAULTS.diskBytes).int().describe('Of /workspace and /home/user together.'),
  inodes: within(DEFAULTS.inodes).int().describe('Files and directories on its disk, and at most so many in /tmp.'),
  openFiles: within(DEFAULTS.openFiles).int().describe('Of each process.'),
  cpuSeconds: within(DEFAULTS.cpuSeconds)
    .int()
    .nullable()
    .describe('Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.'),
}

/** Sandboxes from before there were so many limits are read with the defaults of those that they lack. */
export const limits = z.strictObject({
  ...limitFields,
  inodes: limitFields.inodes.default(DEFAULTS.inodes.default),
  openFiles: limitFields.openFiles.default(DEFAULTS.openFiles.default),
  cpuSeconds: limitFields.cpuSeconds.default(null),
})
export type Limits = z.infer<typeof limits>

/** Those that a caller names. */
export const someLimits = z.strictObject(limitFields).partial()
export type SomeLimits = z.infer<typeof someLimits>

const BYTES_PER_INODE = 16_384

/** What a disk of that size has of them, unless it is said. */
export function inodesFor(diskBytes: number): number {
  return Math.min(DEFAULTS.inodes.max, Math.max(DEFAULTS.inodes.min, Math.floor(diskBytes / BYTES_PER_INODE)))
}

export const changeLimitsBody = someLimits.refine((body) => Object.keys(body).length > 0, 'must name a limit')

/** What came of system calls that user code must not get through. */
export const isolationProbe = z.strictObject({ tried: z.int(), passed: z.array(z.string()) })
export type IsolationProbe = z.infer<typeof isolationProbe>

/** What really isolates a sandbox, as the backend found it, not as it was asked for. */
export const effectiveIsolation = z.strictObject({
  backend: z.string(),
  runtime: z.string(),
  tier,
  namespaces: z.array(z.string()),
  network: z.enum(['none', 'policy-only', 'host']),
  seccomp: z.enum(['allowlist', 'none']),
  noNewPrivileges: z.boolean(),
  /** What the guest could hold at most; user code holds none. */
  capabilities: z.array(z.string()),
  uidRange: z.strictObject({ first: z.int(), count: z.int() }),
  cgroup: z.enum(['v1', 'v2', 'hybrid']),
  limits: z.array(z.enum(['memory', 'swap', 'pids', 'cpu', 'disk', 'inodes', 'open-files'])),
  /** The root file system. Like all that follows: null for sandboxes of versions that did not look. */
  root: z.enum(['read-only', 'writable']).nullable().default(null),
  /** Paths that should be hidden inside and are not. */
  unmasked: z.array(z.string()).nullable().default(null),
  /** In what the mounts are not those that were asked for. */
  mountFaults: z.array(z.string()).nullable().default(null),
  /** Tried in another sandbox of the same runtime, list of system calls, image and boot. */
  probe: isolationProbe.nullable().default(null),
})
export type EffectiveIsolation = z.infer<typeof effectiveIsolation>

/** What becomes of a sandbox that was idle for too long. */
const onIdle = z.enum(['terminate', 'pause'])
/** One that was paused for being idle goes on with its next use; one that somebody paused waits to be resumed. */
export const pausedBy = z.enum(['request', 'idle'])
export type PausedBy = z.infer<typeof pausedBy>

export const createSandboxBody = z.strictObject({
  name: name.optional(),
  agent: agentId
    .optional()
    .describe(
      `Who it runs for. When absent: the agent that the key is bound to; "${DEFAULT_AGENT}" if it is bound to none.`,
    ),
  template: name.default('base'),
  labels: labels.default({}),
  env: envVars.default({}),
  ephemeral: z
    .boolean()
    .default(false)
    .describe(
      'It is for one run and ends with it. Rules may ask less about it, and an approval holds for the same run in another sandbox.',
    ),
  ttlMs: within(DEFAULTS.ttlMs).int().default(DEFAULTS.ttlMs.default),
  idleMs: within(DEFAULTS.idleMs).int().default(DEFAULTS.idleMs.default),
  onIdle: onIdle.default('terminate'),
  maxPausedMs: within(DEFAULTS.maxPausedMs).int().default(DEFAULTS.maxPausedMs.default),
  maxLifetimeMs: within(DEFAULTS.maxLifetimeMs).int().default(DEFAULTS.maxLifetimeMs.default),
  limits: someLimits.default({}),
  tier: tier.default('standard').describe('At least that; a template or a policy may ask for more.'),
  doors: doorNames.default([]).describe('Doors beside `control` and those of the template.'),
  models: modelNames
    .default([])
    .describe('Models that it may name beside those of the template; naming one gives it the door `llm`.'),
  modelLimits: someModelLimits
    .default({})
    .describe('Caps on its calls of models; those of the template hold where absent.'),
  worktree: worktreeBody.optional().describe('A git repository of the host, at /workspace/repo; it needs a grant.'),
})
export type CreateSandboxBody = z.infer<typeof createSandboxBody>

export const sandbox = z.strictObject({
  id: sandboxId,
  tenant: id,
  agent: agentId,
  /** The agent's generation at creation. */
  generation: z.int(),
  name: z.string().nullable(),
  node: z.string(),
  template: z.string(),
  /** What its root file system is made of; the name says what is in it. Null until it is known. */
  image: z.string().nullable(),
  state: sandboxState,
  labels,
  limits,
  mounts: z.array(mount).describe('What it sees of the host: the grants of its agent when it was created.'),
  doors: z.array(doorName).describe('The ways out that it has.'),
  models: z.array(z.string()).describe('Models that it may name. A rule must allow each call.'),
  modelLimits,
  ttlMs: z.int(),
  idleMs: z.int(),
  onIdle,
  maxPausedMs: z.int().describe('It ends when it was paused for so long.'),
  createdAt: time,
  lastActiveAt: time,
  expiresAt: time,
  endsAt: time.describe('The end of the maximum lifetime: nothing extends past it.'),
  pausedAt: time.nullable().describe('While it is paused, the time until expiresAt does not run.'),
  pausedBy: pausedBy.nullable(),
  endedAt: time.nullable(),
  endReason: endReason.nullable(),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  isolation: effectiveIsolation.nullable(),
})
export type Sandbox = z.infer<typeof sandbox>

export const extendSandboxBody = z.strictObject({
  ttlMs: within(DEFAULTS.ttlMs).int().optional().describe('From now; the sandbox own TTL when absent.'),
})

export const terminateSandboxBody = z.strictObject({
  force: z.boolean().default(false).describe('Do not let running commands finish their last second: kill at once.'),
})
