import {
  doorNames,
  endCause,
  jobArtifacts,
  jobLanguage,
  jobProvenance,
  type JobState,
  jobState,
  labels,
  modelLimits,
  resourceUsage,
  role,
  runResult,
  submitJobBody,
} from '@airlock/contract'
import { type Expression, sql } from 'kysely'
import { z } from 'zod'
import { flagColumn, jsonColumn } from './engine/json-column.ts'
import type { Queries } from './engine/store.ts'

const problem = z.strictObject({ code: z.string(), message: z.string() })

/** Everything that a try needs. It holds environment, code and files, so it is removed when the job ends. */
const jobSpec = z.strictObject({
  body: submitJobBody,
  /** Who submitted it; asked about again before each try. */
  principal: z.strictObject({
    actor: z.string(),
    tenant: z.string(),
    role,
    agents: z.array(z.string()).nullable(),
    platform: z.boolean(),
  }),
})

/** What a run is beside its job. It stays when the job has ended. */
const jobRun = z.strictObject({
  graph: z.string(),
  version: z.string(),
  model: z.string(),
  /** Those that its sandbox may name. */
  models: z.array(z.string()),
  budget: modelLimits,
  doors: doorNames,
})
export type JobRun = z.infer<typeof jobRun>

const storedJob = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string(),
  actor: z.string(),
  state: jobState,
  spec: jsonColumn(jobSpec).nullable(),
  labels: jsonColumn(labels),
  argv: jsonColumn(z.array(z.string())),
  language: jobLanguage.nullable(),
  template: z.string(),
  sha256: z.string(),
  idempotencyKey: z.string().nullable(),
  /** SHA-256 of the request: the same key with another request is refused. */
  fingerprint: z.string(),
  timeoutMs: z.int(),
  queueMs: z.int(),
  queueEndsAt: z.int(),
  retries: z.int(),
  retryDelayMs: z.int(),
  tries: z.int(),
  notBefore: z.int(),
  node: z.string().nullable(),
  /** By the clock of the store: other nodes may judge it from then on. */
  leaseUntil: z.int().nullable(),
  /** Written before it is made, like the id of the command: a crash leaves nothing that the row does not name. */
  sandbox: z.string().nullable(),
  command: z.string().nullable(),
  cancelAt: z.int().nullable(),
  cancelBy: z.string().nullable(),
  /** The command has ended, and this row says how. */
  hasResult: flagColumn,
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  cause: endCause.nullable(),
  error: jsonColumn(problem).nullable(),
  truncated: flagColumn,
  artifacts: jsonColumn(jobArtifacts).nullable(),
  resourceUsage: jsonColumn(resourceUsage).nullable(),
  provenance: jsonColumn(jobProvenance).nullable(),
  /** Bytes of the log over all tries, and where the log of the latest try begins. */
  logBytes: z.int(),
  logStart: z.int(),
  createdAt: z.int(),
  startedAt: z.int().nullable(),
  endedAt: z.int().nullable(),
  /** The node that ended it, and has to record that. */
  endNode: z.string().nullable(),
  recorded: flagColumn,
  /** Null of a plain job. */
  run: jsonColumn(jobRun).nullable(),
  /** Of a run that succeeded. */
  result: jsonColumn(runResult).nullable(),
})
export type StoredJob = z.infer<typeof storedJob>

export type JobChanges = Partial<
  Omit<
    StoredJob,
    'id' | 'tenant' | 'agent' | 'actor' | 'labels' | 'argv' | 'fingerprint' | 'recorded' | 'leaseUntil' | 'run'
  >
>

/** Throws when the idempotency key is taken: see `Store.isTaken`. */
export async function insertJob(db: Queries, job: StoredJob): Promise<void> {
  const {
    labels: own,
    argv,
    recorded,
    spec,
    error,
    artifacts,
    resourceUsage: usage,
    provenance,
    run,
    result,
    ...plain
  } = job
  await db
    .insertInto('jobs')
    .values({
      ...plain,
      labels: JSON.stringify(own),
      argv: JSON.stringify(argv),
      spec: json(spec),
      error: json(error),
      artifacts: json(artifacts),
      resourceUsage: json(usage),
      provenance: json(provenance),
      run: json(run),
      result: json(result),
      hasResult: flag(job.hasResult),
      truncated: flag(job.truncated),
      recorded: flag(recorded),
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export async function findJob(db: Queries, id: string): Promise<StoredJob | undefined> {
  const row = await db.selectFrom('jobs').selectAll().where('id', '=', id).executeTakeFirst()
  return row && storedJob.parse(row)
}

export async function findJobByKey(
  db: Queries,
  of: { readonly tenant: string; readonly agent: string; readonly idempotencyKey: string },
): Promise<StoredJob | undefined> {
  const row = await db
    .selectFrom('jobs')
    .selectAll()
    .where('tenant', '=', of.tenant)
    .where('agent', '=', of.agent)
    .where('idempotencyKey', '=', of.idempotencyKey)
    .executeTakeFirst()
  return row && storedJob.parse(row)
}

export interface JobFilter {
  readonly tenant: string
  readonly agents: readonly string[] | null
  /** Runs are listed apart from plain jobs. */
  readonly kind: 'job' | 'run'
  readonly state: JobState | undefined
  readonly before: string | undefined
  readonly limit: number
}

/** Newest first: ids sort by age. */
export async function listJobs(db: Queries, filter: JobFilter): Promise<readonly StoredJob[]> {
  if (filter.agents?.length === 0) return []
  let query = db.selectFrom('jobs').selectAll().where('tenant', '=', filter.tenant)
  query = query.where('run', filter.kind === 'run' ? 'is not' : 'is', null)
  if (filter.agents) query = query.where('agent', 'in', filter.agents)
  if (filter.state !== undefined) query = query.where('state', '=', filter.state)
  if (filter.before !== undefined) query = query.where('id', '<', filter.before)
  return parseAll(await query.orderBy('id', 'desc').limit(filter.limit).execute())
}

export async function listRunningJobs(db: Queries, node: string): Promise<readonly StoredJob[]> {
  return parseAll(
    await db.selectFrom('jobs').selectAll().where('state', '=', 'running').where('node', '=', node).execute(),
  )
}

/** Running jobs of other nodes that let their lease go by. */
export async function listAbandonedJobs(
  db: Queries,
  of: { readonly node: string; readonly now: Expression<number>; readonly limit: number },
): Promise<readonly StoredJob[]> {
  const query = db.selectFrom('jobs').selectAll().where('state', '=', 'running').where('node', '<>', of.node)
  return parseAll(await query.where('leaseUntil', '<', of.now).orderBy('id').limit(of.limit).execute())
}

export async function listOverdueJobs(
  db: Queries,
  of: { readonly now: number; readonly limit: number },
): Promise<readonly StoredJob[]> {
  const query = db.selectFrom('jobs').selectAll().where('state', '=', 'queued').where('queueEndsAt', '<=', of.now)
  return parseAll(await query.orderBy('queueEndsAt').limit(of.limit).execute())
}

/** Ended jobs whose last record may be missing in the evidence. */
export async function listOwedJobs(
  db: Queries,
  of: { readonly node: string; readonly after: string; readonly limit: number },
): Promise<readonly StoredJob[]> {
  const query = db.selectFrom('jobs').selectAll().where('recorded', '=', 0).where('endNode', '=', of.node)
  return parseAll(await query.where('id', '>', of.after).orderBy('id').limit(of.limit).execute())
}

export async function setJobsRecorded(db: Queries, ids: readonly string[]): Promise<void> {
  await db.updateTable('jobs').set({ recorded: 1 }).where('id', 'in', ids).execute()
}

/** The try that a node runs. */
export interface JobLease {
  readonly id: string
  readonly node: string | null
  readonly tries: number
}

/** False when the try is not that node's any more: then nothing of it may be written. */
export async function changeRunningJob(db: Queries, lease: JobLease, changes: JobChanges): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('jobs')
    .set(columnsOf(changes))
    .where('id', '=', lease.id)
    .where('state', '=', 'running')
    .where('node', '=', lease.node)
    .where('tries', '=', lease.tries)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Of one that waits. */
export async function changeQueuedJob(db: Queries, id: string, changes: JobChanges): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('jobs')
    .set(columnsOf(changes))
    .where('id', '=', id)
    .where('state', '=', 'queued')
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** The heartbeat. Answers the jobs that are still this node's. */
export async function renewLeases(
  db: Queries,
  of: { readonly node: string; readonly leaseUntil: Expression<number> },
): Promise<readonly Pick<StoredJob, 'id' | 'tries' | 'cancelAt'>[]> {
  const rows = await db
    .updateTable('jobs')
    .set({ leaseUntil: of.leaseUntil })
    .where('state', '=', 'running')
    .where('node', '=', of.node)
    .returning(['id', 'tries', 'cancelAt'])
    .execute()
  return z.array(storedJob.pick({ id: true, tries: true, cancelAt: true })).parse(rows)
}

/** Removes what ended long ago, with its log. */
export async function deleteOldJobs(
  db: Queries,
  of: { readonly endedBefore: number; readonly limit: number },
): Promise<void> {
  const old = await db
    .selectFrom('jobs')
    .select('id')
    .where('endedAt', '<', of.endedBefore)
    .where('recorded', '=', 1)
    .limit(of.limit)
    .execute()
  const ids = old.map(({ id }) => id)
  if (ids.length === 0) return
  await db.deleteFrom('jobLogs').where('job', 'in', ids).execute()
  await db.deleteFrom('jobs').where('id', 'in', ids).execute()
}

const logChunk = z.object({
  start: z.int(),
  attempt: z.int(),
  /** `events`: the event output of a run. */
  stream: z.enum(['stdout', 'stderr', 'events']),
  base64: z.string(),
})
export type LogChunk = z.infer<typeof logChunk>

/** In one transaction with the `logBytes` that cover them. */
export async function insertLog(db: Queries, job: string, chunks: readonly LogChunk[]): Promise<void> {
  if (chunks.length === 0) return
  await db
    .insertInto('jobLogs')
    .values(chunks.map((chunk) => ({ job, ...chunk })))
    .onConflict((conflict) => conflict.columns(['job', 'start']).doNothing())
    .execute()
}

/** From the chunk on that has the byte `from`. */
export async function readLog(
  db: Queries,
  of: { readonly job: string; readonly from: number; readonly limit: number },
): Promise<readonly LogChunk[]> {
  const first = db
    .selectFrom('jobLogs as before')
    .select(({ fn }) => fn.max('before.start').as('start'))
    .where('before.job', '=', of.job)
    .where('before.start', '<=', of.from)
  const rows = await db
    .selectFrom('jobLogs')
    .selectAll()
    .where('job', '=', of.job)
    .where('start', '>=', sql<number>`coalesce(${first}, 0)`)
    .orderBy('start')
    .limit(of.limit)
    .execute()
  return z.array(logChunk).parse(rows)
}

function parseAll(rows: readonly unknown[]): readonly StoredJob[] {
  return z.array(storedJob).parse(rows)
}

/** As columns hold it: JSON is text, a flag is 0 or 1. */
function columnsOf<C extends JobChanges>(changes: C) {
  const { spec, error, artifacts, resourceUsage: usage, provenance, result, hasResult, truncated, ...plain } = changes
  return {
    ...plain,
    ...(spec === undefined ? {} : { spec: json(spec) }),
    ...(error === undefined ? {} : { error: json(error) }),
    ...(artifacts === undefined ? {} : { artifacts: json(artifacts) }),
    ...(usage === undefined ? {} : { resourceUsage: json(usage) }),
    ...(provenance === undefined ? {} : { provenance: json(provenance) }),
    ...(result === undefined ? {} : { result: json(result) }),
    ...(hasResult === undefined ? {} : { hasResult: flag(hasResult) }),
    ...(truncated === undefined ? {} : { truncated: flag(truncated) }),
  }
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value)
}

function flag(is: boolean): number {
  return is ? 1 : 0
}
