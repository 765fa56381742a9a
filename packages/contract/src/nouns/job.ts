import { z } from 'zod'
import { BOUNDS, DEFAULTS } from '../defaults.ts'
import { artifactPatterns, artifactTtlMs, jobArtifacts } from './files/artifact.ts'
import { endCause, runCommandBody } from './command.ts'
import { tier } from './decision.ts'
import { resourceUsage } from './resource-usage.ts'
import { someLimits } from './sandbox.ts'
import {
  agentId,
  artifactId,
  commandId,
  envVars,
  id,
  jobId,
  labels,
  name,
  sandboxId,
  sandboxPath,
  stepKey,
  time,
  within,
} from './scalars.ts'

export const JOB_STATES = ['queued', 'running', 'succeeded', 'failed', 'canceled'] as const
export const jobState = z.enum(JOB_STATES)
export type JobState = z.infer<typeof jobState>

export const jobLanguage = z.enum(['python', 'node', 'bash'])
export type JobLanguage = z.infer<typeof jobLanguage>

/** What runs the code of a job, and the file in /workspace that holds it. */
export const JOB_PROGRAMS = {
  python: { file: 'job.py', argv: ['python3', 'job.py'] },
  node: { file: 'job.mjs', argv: ['node', 'job.mjs'] },
  bash: { file: 'job.sh', argv: ['bash', 'job.sh'] },
} as const satisfies Record<JobLanguage, { readonly file: string; readonly argv: readonly string[] }>

export const jobInput = z.strictObject({
  path: sandboxPath,
  base64: z.base64().describe('Its content.'),
})
export type JobInput = z.infer<typeof jobInput>

const jobArtifactInput = z.strictObject({
  artifact: artifactId,
  path: sandboxPath.describe('Where its content is when the job begins.'),
})

export const submitJobBody = z
  .strictObject({
    argv: runCommandBody.shape.argv,
    shell: runCommandBody.shape.shell,
    code: z.string().min(1).max(BOUNDS.jobCodeBytes).optional().describe('A program, run from a file in /workspace.'),
    language: jobLanguage.optional().describe('What runs the code.'),
    template: name.default('base'),
    agent: agentId.optional(),
    env: envVars.default({}),
    limits: someLimits.default({}),
    tier: tier.default('standard'),
    files: z.array(jobInput).max(BOUNDS.jobFiles).default([]).describe('Files that are there when it begins.'),
    inputs: z
      .array(jobArtifactInput)
      .max(BOUNDS.jobInputs)
      .default([])
      .describe('Artifacts that it is given as files.'),
    artifacts: artifactPatterns
      .default([])
      .describe('Files to keep as artifacts when it ends, by patterns: absolute, or relative to /workspace.'),
    artifactTtlMs,
    timeoutMs: within(DEFAULTS.jobTimeoutMs).int().default(DEFAULTS.jobTimeoutMs.default).describe('Of one try.'),
    queueMs: within(DEFAULTS.jobQueueMs)
      .int()
      .default(DEFAULTS.jobQueueMs.default)
      .describe('How long it may wait to begin; then it fails with queue_timeout.'),
    retries: within(DEFAULTS.jobRetries)
      .int()
      .default(DEFAULTS.jobRetries.default)
      .describe('How often a try that failed is followed by another. Without retries it begins at most once.'),
    retryDelayMs: within(DEFAULTS.jobRetryDelayMs)
      .int()
      .default(DEFAULTS.jobRetryDelayMs.default)
      .describe('Before the second try; doubled before each further one.'),
    maxOutputBytes: within(DEFAULTS.jobOutputBytes).int().default(DEFAULTS.jobOutputBytes.default),
    labels: labels.default({}),
    idempotencyKey: stepKey
      .optional()
      .describe('The same key again, with the same request and agent, answers the first job and submits nothing.'),
  })
  .refine(
    (body) => [body.argv, body.shell, body.code].filter((one) => one !== undefined).length === 1,
    'give one of argv, shell and code',
  )
  .refine((body) => (body.code === undefined) === (body.language === undefined), 'language goes with code')
export type SubmitJobBody = z.infer<typeof submitJobBody>

export const jobProvenance = z.strictObject({
  /** Digest of its root file system; null for the host's. */
  image: z.string().nullable(),
  template: z.string(),
  runtime: z.string().nullable(),
  tier: tier.nullable(),
  policyVersion: z.string().nullable(),
})
export type JobProvenance = z.infer<typeof jobProvenance>

export const job = z.strictObject({
  id: jobId,
  tenant: id,
  agent: agentId,
  state: jobState,
  /** The program and its arguments; of code, what runs its file. */
  argv: z.array(z.string()),
  language: jobLanguage.nullable(),
  /** Of the code, or of the arguments as JSON. */
  sha256: z.string(),
  template: z.string(),
  labels,
  idempotencyKey: z.string().nullable(),
  timeoutMs: z.int(),
  retries: z.int(),
  /** Tries that have begun. */
  tries: z.int(),
  cancelRequested: z.boolean(),
  /** Of the latest try. */
  node: z.string().nullable(),
  sandbox: sandboxId.nullable(),
  command: commandId.nullable(),
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  /** Why the command ended; null without one. */
  cause: endCause.nullable(),
  /** Why it failed, where the exit of its command does not say it. */
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  /** Bytes of its log, over all tries. */
  outputBytes: z.int(),
  /** The command said more than `maxOutputBytes`, or a part was lost with its sandbox. */
  truncated: z.boolean(),
  /** What was collected of its last try; null when nothing was asked for, or before that. */
  artifacts: jobArtifacts.nullable(),
  resourceUsage: resourceUsage.nullable(),
  provenance: jobProvenance.nullable(),
  createdAt: time,
  /** While it is queued, when it fails for having waited too long. */
  queueEndsAt: time,
  /** It does not begin before. */
  notBefore: time,
  startedAt: time.nullable(),
  endedAt: time.nullable(),
})
export type Job = z.infer<typeof job>

/** `offset` counts the bytes of both streams over all tries, up to the end of this event, and is its SSE id. */
export const jobEvent = z.discriminatedUnion('event', [
  z.strictObject({ event: z.literal('started'), job }),
  z.strictObject({
    event: z.literal('output'),
    stream: z.enum(['stdout', 'stderr']),
    offset: z.int(),
    /** Which try said it. */
    attempt: z.int(),
    text: z.string().optional(),
    base64: z.string().optional(),
  }),
  z.strictObject({ event: z.literal('ended'), job }),
  z.strictObject({
    event: z.literal('error'),
    error: z.strictObject({ code: z.string(), message: z.string(), hint: z.string() }),
  }),
])
export type JobEvent = z.infer<typeof jobEvent>

/** What there is of its log now. */
export const jobLog = z.strictObject({
  job,
  stdout: z.string(),
  stderr: z.string(),
  /** Where to go on. */
  offset: z.int(),
})
export type JobLog = z.infer<typeof jobLog>
