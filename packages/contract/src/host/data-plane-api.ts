import { z } from 'zod'
import { commandState, endCause, keptOutput, signalName } from '../nouns/command.ts'
import { resourceUsage } from '../nouns/resource-usage.ts'
import { effectiveIsolation, limits } from '../nouns/sandbox.ts'
import { artifactPattern } from '../nouns/files/artifact.ts'
import { BOUNDS } from '../defaults.ts'
import {
  agentId,
  artifactId,
  commandId,
  envVars,
  id,
  sandboxId,
  sandboxPath,
  sessionId,
  stepId,
} from '../nouns/scalars.ts'
import { runtime } from '../nouns/session.ts'
import { packageName, templateProgress } from '../nouns/template.ts'

/** The file system that the disks of sandboxes are on, as it is now. */
const nodeDisk = z.strictObject({
  /** What programs may still write there. */
  freeBytes: z.int(),
  /** What the disks of sandboxes have taken of it. */
  takenBytes: z.int(),
  /** What is to stay free. */
  reserveBytes: z.int(),
})
export type NodeDisk = z.infer<typeof nodeDisk>

/**
 * What control plane and data plane say to each other: HTTP over a unix socket that only the control plane's uid can
 * open. Bodies are JSON unless a line says bytes. Errors are `{error: {code, message}}` with registry codes.
 *
 * | method and path | body → answer |
 * |---|---|
 * | `GET /health` | → `dataPlaneHealth` |
 * | `GET /sandboxes` | → `{sandboxes: nodeSandbox[]}` |
 * | `GET /metrics` | → `nodeMetrics`; what the kernel says of each living sandbox now |
 * | `POST /sandboxes` | `{permit}` → `startedSandbox`; the sandbox is up and its guest attached |
 * | `PUT /sandboxes/:id/token` | `nodeToken` → `{}`; the guest has it |
 * | `DELETE /sandboxes/:id?reason=R` | → `stoppedSandbox`; idempotent: an unknown id is already gone; without a reason it is taken for an end that must be looked into |
 * | `POST /sandboxes/:id/limits` | `limits` → `limits`; the kernel holds it to what it answers |
 * | `POST /sandboxes/:id/pause` | → `{}`; its processes stand still when it answers; idempotent |
 * | `POST /sandboxes/:id/resume` | → `{}`; idempotent |
 * | `POST /freeze` | `freezeRequest` → `frozenSandboxes`; all of a scope at once, and permits of it that were signed before are worthless |
 * | `POST /sandboxes/:id/commands` | `nodeCommandSpec` → `nodeCommand`; an id that exists is answered as it is |
 * | `GET /sandboxes/:id/commands` | → `{commands: nodeCommand[]}` |
 * | `GET /sandboxes/:id/commands/:cid` | → `nodeCommand` |
 * | `GET /sandboxes/:id/commands/:cid/wait` | → `nodeCommand` once it has ended and its output is complete |
 * | `GET /sandboxes/:id/commands/:cid/output?from=N` | → bytes: data frames of the guest codec, then one `nodeCommand` message frame when it has ended; `&rich=whole` sends rich frames from their beginning |
 * | `GET /outputs/:cid?bytes=N` | → bytes: the whole output of a command that said more than its cap, both streams as they came; the header `x-size` is how many. Also when its sandbox is gone. One that is not `N` bytes is damaged: `output_not_kept` |
 * | `POST /sandboxes/:id/commands/:cid/signal` | `{signal}` → `{}` |
 * | `POST /sandboxes/:id/commands/:cid/stdin?end=true` | bytes → `{}` |
 * | `POST /sandboxes/:id/sessions` | `nodeSessionSpec` → `nodeSession`; an id that exists is answered as it is |
 * | `GET /sandboxes/:id/sessions` | → `{sessions: nodeSession[]}` |
 * | `POST /sandboxes/:id/sessions/:sid/interrupt` | → `{}`; the step that runs, if any, is interrupted and its state kept |
 * | `POST /sandboxes/:id/sessions/:sid/restart` | → `nodeSession` |
 * | `DELETE /sandboxes/:id/sessions/:sid` | → `{}`; idempotent |
 * | `GET /sandboxes/:id/files?path=P` | → bytes; the header `x-size` is the size at open |
 * | `PUT /sandboxes/:id/files?path=P&mode=truncate` | bytes → `{bytes}` |
 * | `POST /sandboxes/:id/find` | `findFilesRequest` → `foundFiles`; regular files by patterns |
 * | `POST /sandboxes/:id/artifacts` | `keepFileRequest` → `storedArtifact`; the bytes of a file are kept |
 * | `PUT /artifacts/:tenant/:artifact?max=N` | bytes → `storedArtifact` |
 * | `GET /artifacts/:tenant/:artifact?from=N&to=N` | → bytes; without `to` up to the end |
 * | `DELETE /artifacts/:tenant/:artifact` | → `{}`; idempotent |
 * | `GET /artifacts` | → `{tenants}`: who has artifacts here |
 * | `GET /artifacts/:tenant` | → `{artifacts}`: their ids |
 * | `GET /sandboxes/:id/archive?path=P` | → bytes: a tar of a directory; it has arrived whole when it ends as a tar does |
 * | `PUT /sandboxes/:id/archive?path=P` | bytes of a tar → `{bytes}`; its entries are below the directory, and on disk |
 * | `POST /sandboxes/:id/files` | `fileOperation` → the result of the guest |
 * | `POST /worktrees/commit` | `findCommitRequest` → `worktreeBase`; what cannot be had is `worktree_refused` |
 * | `POST /sandboxes/:id/worktree/seal` | → `worktreeDiff`; what was changed so far, copied |
 * | `GET /sandboxes/:id/worktree?seal=S` | → `worktreeDiff` of that copy |
 * | `GET /sandboxes/:id/worktree/patch?seal=S` | → bytes: that copy as a unified patch |
 * | `POST /sandboxes/:id/worktree/export` | `nodeExportRequest` → `nodeExport`; the branch is in the repository. The same again has the same effect |
 * | `POST /paths/look` | `lookAtPathRequest` → `foundPath`; what may not be granted is `grant_refused` |
 * | `GET /images` | → `nodeImages` |
 * | `POST /images` | `{packages}` → lines of `nodeImageEvent`, the last of which is `ended` or `error`; builds what is not there |
 * | `PUT /images` | bytes of a tar → `importedImage` |
 * | `POST /images/prune` | `imageReferences` → `{removed}`; images that nobody refers to and nothing stands on are gone |
 *
 * Commands and steps that are followed from their beginning are asked for in frames of the guest codec: a connection that
 * was upgraded to `FOLLOW_PROTOCOL` carries one `followedCall` after another, each answered by a `followAnswer` and, when it
 * was taken, by its output as above. A step is followed under its id like a command.
 */
export const dataPlaneHealth = z.strictObject({
  node: z.string(),
  backend: z.string(),
  bootId: z.string(),
  capacity: z.int(),
  /** Whether sandboxes can be paused. */
  pause: z.boolean(),
  /** What the machine has for all of its sandboxes. */
  memoryBytes: z.int(),
  cpus: z.int(),
  disk: nodeDisk,
  /** Sandboxes that were destroyed at its start because their state could not be read; until their end is asked for. */
  damaged: z.array(sandboxId),
})
export type DataPlaneHealth = z.infer<typeof dataPlaneHealth>

/** `lost`: its guest died or its host restarted; only remains to be destroyed. */
export const nodeSandbox = z.strictObject({
  id: sandboxId,
  /** As its permit says. */
  tenant: id,
  agent: agentId,
  state: z.enum(['starting', 'running', 'paused', 'stopping', 'lost']),
  lostReason: z.enum(['guest_lost', 'host_restarted', 'max_lifetime']).nullable(),
  /** What its group ran out of, where that ended its guest; or that its files on the host could not be used. */
  lostFor: z.enum(['out_of_memory', 'pids_exhausted', 'state_damaged']).optional(),
  runningCommands: z.int(),
  /** What it is held to; in a change that was broken off, what it should have become. */
  limits,
})
export type NodeSandbox = z.infer<typeof nodeSandbox>

export const startSandboxRequest = z.strictObject({ permit: z.string().max(1024 * 1024) })
export const startedSandbox = z.strictObject({ id: sandboxId, image: z.string(), isolation: effectiveIsolation })
export type StartedSandbox = z.infer<typeof startedSandbox>

/** Null is any: all three null is everything on the node. */
export const freezeRequest = z.strictObject({
  tenant: id.nullable(),
  agent: agentId.nullable(),
  sandbox: sandboxId.nullable(),
  /** Permits in scope that expire no later than this are refused. */
  permitsUntil: z.int(),
})
export type FreezeRequest = z.infer<typeof freezeRequest>

export const frozenSandboxes = z.strictObject({
  sandboxes: z.array(
    z.strictObject({
      id: sandboxId,
      /** Null when it did not stand still in time. */
      frozenMs: z.number().nullable(),
      processes: z.int().nullable(),
    }),
  ),
})
export type FrozenSandboxes = z.infer<typeof frozenSandboxes>

/** For the doors of the sandbox; `lifeMs` is what is left of it. */
export const nodeToken = z.strictObject({ token: z.string().max(8192), lifeMs: z.int().min(1) })
export type NodeToken = z.infer<typeof nodeToken>

export const stoppedSandbox = z.strictObject({ existed: z.boolean(), usage: resourceUsage.nullable() })
export type StoppedSandbox = z.infer<typeof stoppedSandbox>

/** What the kernel holds each process to that comes of it. */
const processLimits = z.strictObject({ openFiles: z.int().exactOptional(), cpuSeconds: z.int().exactOptional() })

export const nodeCommandSpec = z.strictObject({
  id: commandId,
  argv: z.array(z.string()).min(1),
  cwd: sandboxPath,
  env: envVars,
  stdin: z.union([z.strictObject({ text: z.string() }), z.enum(['none', 'open'])]),
  timeoutMs: z.int(),
  maxOutputBytes: z.int(),
  /** A third output, as the guest's messages say. */
  eventOutput: z.literal(true).exactOptional(),
  limits: processLimits.exactOptional(),
})
export type NodeCommandSpec = z.infer<typeof nodeCommandSpec>

/** A command, or a step: both run, say something and end, and are followed in the same way. */
export const nodeCommand = z.strictObject({
  id: z.union([commandId, stepId]),
  state: commandState,
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  timedOut: z.boolean(),
  /** Null, or absent of those from before, where it cannot be told. */
  cause: endCause.nullable().optional(),
  truncated: z.boolean(),
  outputBytes: z.int(),
  /** Of a command that said more than its cap, once it has ended: what is kept of it. Absent of those from before. */
  full: keptOutput.nullable().optional(),
  /** Epoch milliseconds by the host's clock. */
  startedAt: z.number(),
  endedAt: z.number().nullable(),
  /** Of a step only: its interpreter was started anew, and what its group used, read outside. */
  restarted: z.boolean().optional(),
  usage: resourceUsage.nullable().optional(),
})
export type NodeCommand = z.infer<typeof nodeCommand>

export const nodeSessionSpec = z.strictObject({
  id: sessionId,
  runtime,
  cwd: sandboxPath,
  env: envVars,
  limits: processLimits.exactOptional(),
})
export type NodeSessionSpec = z.infer<typeof nodeSessionSpec>

export const nodeSession = z.strictObject({
  id: sessionId,
  runtime,
  runtimeVersion: z.string(),
  restarts: z.int(),
})
export type NodeSession = z.infer<typeof nodeSession>

/** A step ends with exit code 0 when it completed and 1 when it failed; why is the last line of its stream `rich`. */
export const nodeStepSpec = z.strictObject({
  id: stepId,
  code: z.string(),
  env: envVars,
  stdin: z.string(),
  timeoutMs: z.int(),
  maxOutputBytes: z.int(),
})
export type NodeStepSpec = z.infer<typeof nodeStepSpec>

export const FOLLOW_PROTOCOL = 'airlock-follow'

export const followedCall = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('command'), sandbox: sandboxId, command: nodeCommandSpec }),
  z.strictObject({ kind: z.literal('step'), sandbox: sandboxId, session: sessionId, step: nodeStepSpec }),
])
export type FollowedCall = z.infer<typeof followedCall>

export const followAnswer = z.union([
  z.strictObject({ taken: z.literal(true) }),
  z.strictObject({ error: z.strictObject({ code: z.string(), message: z.string() }) }),
])
export type FollowAnswer = z.infer<typeof followAnswer>

export const signalRequest = z.strictObject({ signal: signalName })

export const findFilesRequest = z.strictObject({
  patterns: z.array(artifactPattern).min(1).max(BOUNDS.artifactPatterns),
  files: z.int().min(1).max(BOUNDS.collectedArtifacts),
  names: z.int().min(1).max(BOUNDS.collectedNames),
})
export type FindFilesRequest = z.infer<typeof findFilesRequest>

export const keepFileRequest = z.strictObject({
  artifact: artifactId,
  tenant: id,
  path: sandboxPath,
  maxBytes: z.int().min(0),
})
export type KeepFileRequest = z.infer<typeof keepFileRequest>

export const storedArtifact = z.strictObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/), bytes: z.int().min(0) })
export type StoredArtifactBytes = z.infer<typeof storedArtifact>

export const fileOperation = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('file.stat'), path: sandboxPath }),
  z.strictObject({ op: z.literal('file.list'), path: sandboxPath, limit: z.int() }),
  z.strictObject({ op: z.literal('file.mkdir'), path: sandboxPath, parents: z.boolean() }),
  z.strictObject({ op: z.literal('file.move'), from: sandboxPath, to: sandboxPath }),
  z.strictObject({ op: z.literal('file.remove'), path: sandboxPath, recursive: z.boolean() }),
])
export type FileOperation = z.infer<typeof fileOperation>

/** What sandboxes of a node can stand on; the name says what is in it. */
export const nodeImage = z.strictObject({
  name: z.string(),
  source: z.enum(['host', 'packages', 'imported']),
  packages: z.array(packageName),
  bytes: z.int(),
  /** Epoch milliseconds. */
  builtAt: z.number(),
})
export type NodeImage = z.infer<typeof nodeImage>

/** An image that is being built, or whose last build failed. */
export const nodeImageBuild = z.strictObject({
  packages: z.array(packageName),
  state: z.enum(['building', 'failed']),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
})
export type NodeImageBuild = z.infer<typeof nodeImageBuild>

export const nodeImages = z.strictObject({ images: z.array(nodeImage), builds: z.array(nodeImageBuild) })
export type NodeImages = z.infer<typeof nodeImages>

export const buildImageRequest = z.strictObject({ packages: z.array(packageName) })
export const nodeImageEvent = z.discriminatedUnion('event', [
  templateProgress,
  z.strictObject({ event: z.literal('ended'), image: nodeImage }),
  z.strictObject({
    event: z.literal('error'),
    error: z.strictObject({ code: z.string(), message: z.string(), hint: z.string() }),
  }),
])
export type NodeImageEvent = z.infer<typeof nodeImageEvent>

/** `env` is what an OCI image says about itself. */
export const importedImage = z.strictObject({ image: nodeImage, env: envVars })
export type ImportedImage = z.infer<typeof importedImage>

export const imageReferences = z.strictObject({
  names: z.array(z.string()),
  packages: z.array(z.array(packageName)),
  /** Images that were referred to until now: they need not grow old first. */
  dropped: z.array(z.string()),
})
export type ImageReferences = z.infer<typeof imageReferences>
