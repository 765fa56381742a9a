import { z } from 'zod'
import { endCause } from './command.ts'
import { BOUNDS, DEFAULTS } from '../defaults.ts'
import { resourceUsage } from './resource-usage.ts'
import { createSandboxBody } from './sandbox.ts'
import {
  agentId,
  envVars,
  id,
  labels,
  sandboxId,
  sandboxPath,
  sessionId,
  stepId,
  stepKey,
  time,
  within,
} from './scalars.ts'

export const RUNTIMES = ['python', 'node', 'bash'] as const
export const runtime = z.enum(RUNTIMES)
export type Runtime = z.infer<typeof runtime>

export const sessionState = z.enum(['active', 'expired', 'terminated'])
export type SessionState = z.infer<typeof sessionState>

export const sessionEndReason = z.enum(['ttl', 'terminated', 'sandbox_ended', 'create_failed'])
export type SessionEndReason = z.infer<typeof sessionEndReason>

/** `runtime` belongs to the session: a step never chooses another, and none is chosen for it. */
export const createSessionBody = z
  .strictObject({
    runtime,
    sandbox: sandboxId.optional().describe('A living sandbox to open it in.'),
    create: createSandboxBody
      .optional()
      .describe('The sandbox to make for it, which ends with it. Template "data" for python when neither is given.'),
    labels: labels.default({}),
    env: envVars.default({}),
    cwd: sandboxPath.default('/workspace'),
    ttlMs: within(DEFAULTS.sessionTtlMs).int().default(DEFAULTS.sessionTtlMs.default).describe('Extended by use.'),
  })
  .refine((body) => body.sandbox === undefined || body.create === undefined, 'give either sandbox or create')
export type CreateSessionBody = z.infer<typeof createSessionBody>

export const session = z.strictObject({
  id: sessionId,
  tenant: id,
  agent: agentId,
  sandbox: sandboxId,
  /** The sandbox was made for this session and ends with it. */
  ownsSandbox: z.boolean(),
  runtime,
  /** What answers there, as it calls itself. */
  runtimeVersion: z.string(),
  state: sessionState,
  labels,
  ttlMs: z.int(),
  /** How often the interpreter was started anew; what it remembered is gone each time. */
  restarts: z.int(),
  createdAt: time,
  lastActiveAt: time,
  expiresAt: time,
  endedAt: time.nullable(),
  endReason: sessionEndReason.nullable(),
})
export type Session = z.infer<typeof session>

export const runStepBody = z.strictObject({
  code: z
    .string()
    .refine((text) => Buffer.byteLength(text) <= BOUNDS.codeBytes, `at most ${BOUNDS.codeBytes} bytes`)
    .refine((text) => !text.includes('\0'), 'must not contain NUL'),
  stepId: stepKey.optional().describe('Yours: the same id again answers the first result and runs nothing.'),
  timeoutMs: within(DEFAULTS.commandTimeoutMs).int().default(DEFAULTS.commandTimeoutMs.default),
  env: envVars.default({}).describe('For this step only.'),
  stdin: z.string().max(BOUNDS.stdinBytes).default('').describe('What input() and reads of stdin get.'),
  maxOutputBytes: within(DEFAULTS.maxOutputBytes).int().default(DEFAULTS.maxOutputBytes.default),
})
export type RunStepBody = z.infer<typeof runStepBody>

export const stepStatus = z.enum(['accepted', 'running', 'completed', 'failed'])
export type StepStatus = z.infer<typeof stepStatus>

/**
 * One rich output. `data` holds the same thing in several forms by media type: text for text, SVG and LaTeX, base64 for
 * PNG and JPEG, a value for JSON. `result` is the value of the last expression, `display` what was shown on the way.
 */
export const stepOutput = z.strictObject({
  kind: z.enum(['display', 'result']),
  data: z.record(z.string().max(128), z.json()),
})
export type StepOutput = z.infer<typeof stepOutput>

/**
 * Why a step failed. What the code threw has its own name; what happened to it has one of these: `Timeout`,
 * `Interrupted`, `RuntimeCrashed` (the interpreter died), `OutcomeUnknown` (we died while it ran, and nobody can say).
 */
export const stepError = z.strictObject({ name: z.string(), message: z.string(), traceback: z.string() })
export type StepError = z.infer<typeof stepError>

/** What a driver says about a step beside its text, one JSON line each, on the stream `rich`. */
export const richLine = z.union([stepOutput, z.strictObject({ kind: z.literal('error'), error: stepError })])
export type RichLine = z.infer<typeof richLine>

export const step = z.strictObject({
  id: stepId,
  /** The caller's own id; ours where none was given. */
  stepId: z.string(),
  session: sessionId,
  sandbox: sandboxId,
  status: stepStatus,
  error: stepError.nullable(),
  /** Why it ended, as of a command: an exception of its own is `exit`. Null until then, and where nobody can tell any more. */
  cause: endCause.nullable(),
  /** The interpreter was started anew during this step: its state is gone. */
  restarted: z.boolean(),
  truncated: z.boolean(),
  outputBytes: z.int(),
  startedAt: time,
  endedAt: time.nullable(),
  durationMs: z.number().nullable(),
  /** Read from the group of the session, outside; null where it cannot be told apart from others. */
  resourceUsage: resourceUsage.nullable(),
  provenance: z.strictObject({ image: z.string(), runtime: z.string(), policyVersion: z.string().nullable() }),
})
export type Step = z.infer<typeof step>

export const stepResult = z.strictObject({
  ...step.shape,
  stdout: z.string(),
  stderr: z.string(),
  outputs: z.array(stepOutput),
})
export type StepResult = z.infer<typeof stepResult>

/** One event of a step's stream; `offset` counts the bytes of everything it said and is the SSE id. */
export const stepEvent = z.discriminatedUnion('event', [
  z.strictObject({ event: z.literal('started'), step }),
  z.strictObject({
    event: z.literal('output'),
    stream: z.enum(['stdout', 'stderr']),
    offset: z.int(),
    text: z.string().optional(),
    base64: z.string().optional(),
  }),
  z.strictObject({ event: z.literal('rich'), offset: z.int(), output: stepOutput }),
  z.strictObject({ event: z.literal('truncated'), limitBytes: z.int() }),
  z.strictObject({ event: z.literal('ended'), step }),
  z.strictObject({
    event: z.literal('error'),
    error: z.strictObject({ code: z.string(), message: z.string(), hint: z.string() }),
  }),
])
export type StepEvent = z.infer<typeof stepEvent>
