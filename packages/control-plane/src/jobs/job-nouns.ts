import { createHash } from 'node:crypto'
import {
  BOUNDS,
  type JobArtifacts,
  type CreateSandboxBody,
  createSandboxBody,
  DEFAULTS,
  type Job,
  JOB_PROGRAMS,
  type RunCommandBody,
  runCommandBody,
  type SubmitJobBody,
} from '@airlock/contract'
import { EVENT_OUTPUT_FD } from '@airlock/contract/guest'
import type { Collected } from '../artifacts/collect.ts'
import { describeError } from '../evidence/evidence.ts'
import type { JobRun, StoredJob } from '../store/jobs.ts'

/** For the files before the command, and for what it leaves. */
const SLACK_MS = 30 * 60_000

export function toJob(row: StoredJob): Job {
  return {
    id: row.id,
    tenant: row.tenant,
    agent: row.agent,
    state: row.state,
    argv: row.argv,
    language: row.language,
    sha256: row.sha256,
    template: row.template,
    labels: row.labels,
    idempotencyKey: row.idempotencyKey,
    timeoutMs: row.timeoutMs,
    retries: row.retries,
    tries: row.tries,
    cancelRequested: row.cancelAt !== null,
    node: row.node,
    sandbox: row.sandbox,
    command: row.command,
    exitCode: row.exitCode,
    signal: row.signal,
    cause: row.cause,
    error: row.error,
    outputBytes: row.logBytes,
    truncated: row.truncated,
    artifacts: row.artifacts,
    resourceUsage: row.resourceUsage,
    provenance: row.provenance,
    createdAt: toTime(row.createdAt),
    queueEndsAt: toTime(row.queueEndsAt),
    notBefore: toTime(row.notBefore),
    startedAt: row.startedAt === null ? null : toTime(row.startedAt),
    endedAt: row.endedAt === null ? null : toTime(row.endedAt),
  }
}

/** What a collection took, as the result of its job shows it. */
export function toJobArtifacts({ items, skipped, skippedCount, error }: Collected): JobArtifacts {
  return {
    count: items.length,
    bytes: items.reduce((sum, { size }) => sum + size, 0),
    items: items.slice(0, BOUNDS.jobArtifactsShown).map(({ id, name, size, sha256, mediaType }) => ({
      id,
      name,
      size,
      mediaType,
      sha256: sha256 ?? '',
    })),
    skipped: [...skipped],
    skippedCount,
    error: error === undefined ? null : describeError(error),
  }
}

export function isOver({ state }: Pick<StoredJob, 'state'>): boolean {
  return state !== 'queued' && state !== 'running'
}

/** What a job runs, word for word. */
export function argvOf({ argv, shell, language }: SubmitJobBody): readonly string[] {
  if (language !== undefined) return JOB_PROGRAMS[language].argv
  return argv ?? ['/bin/sh', '-c', shell ?? '']
}

/** SHA-256 of the code, or of the arguments as JSON. */
export function sha256Of(body: SubmitJobBody): string {
  return sha256(body.code ?? JSON.stringify(argvOf(body)))
}

/** The same request has the same one. */
export function fingerprintOf(body: SubmitJobBody): string {
  const { idempotencyKey: _key, inputs, artifacts, artifactTtlMs, ...asked } = body
  const given = inputs.length > 0 ? { inputs } : {}
  const kept = artifacts.length > 0 ? { artifacts, artifactTtlMs } : {}
  return sha256(JSON.stringify(sorted({ ...asked, ...given, ...kept })))
}

/** The sandbox of each try. It lives longer than the command may, and a pause of its own accord never comes. */
export function sandboxFor(
  body: SubmitJobBody,
  of: { readonly agent: string; readonly job: string; readonly run: JobRun | null },
): CreateSandboxBody {
  const { template, env, limits, tier, labels, timeoutMs } = body
  const maxLifetimeMs = Math.min(timeoutMs + SLACK_MS, DEFAULTS.maxLifetimeMs.max)
  const times = { ttlMs: maxLifetimeMs, maxLifetimeMs, idleMs: DEFAULTS.idleMs.max }
  const ways = of.run ? { models: of.run.models, modelLimits: of.run.budget, doors: of.run.doors } : {}
  return createSandboxBody.parse({ agent: of.agent, template, env, limits, tier, labels, ...ways, ...times })
}

/** The command of a run has an event output, and a variable that names its file descriptor. */
export function commandFor(body: SubmitJobBody, run: JobRun | null): RunCommandBody & { readonly eventOutput?: true } {
  const { timeoutMs, maxOutputBytes } = body
  const env = run ? { AIRLOCK_EVENTS_FD: `${EVENT_OUTPUT_FD}`, AIRLOCK_MODEL: run.model } : {}
  const command = runCommandBody.parse({ argv: argvOf(body), env, timeoutMs, maxOutputBytes, background: true })
  return run ? { ...command, eventOutput: true } : command
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** With the keys of every object in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, part]) => [key, sorted(part)]))
}

function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
