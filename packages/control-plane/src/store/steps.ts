import { decision, endCause, type EndCause, resourceUsage, stepError, stepStatus } from '@airlock/contract'
import { z } from 'zod'
import { flagColumn, jsonColumn } from './engine/json-column.ts'
import { rawQuery } from './engine/raw-query.ts'
import type { Queries } from './engine/store.ts'

const storedStep = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string(),
  sandbox: z.string(),
  session: z.string(),
  stepId: z.string(),
  codeHash: z.string(),
  status: stepStatus,
  error: jsonColumn(stepError).nullable(),
  cause: endCause.nullable(),
  restarted: flagColumn,
  truncated: flagColumn,
  outputBytes: z.int(),
  maxOutputBytes: z.int(),
  usage: jsonColumn(resourceUsage).nullable(),
  startedAt: z.int(),
  endedAt: z.int().nullable(),
  /** Who asked for it. */
  actor: z.string(),
  recorded: flagColumn,
  /** What Guardian said of it; null of steps that are older than Guardian. */
  decision: jsonColumn(decision).nullable(),
})
export type StoredStep = z.infer<typeof storedStep>

/** How a step ended. */
export type StepEnd = Pick<
  StoredStep,
  'status' | 'error' | 'cause' | 'restarted' | 'truncated' | 'outputBytes' | 'usage' | 'startedAt' | 'endedAt'
>

const UNENDED = ['accepted', 'running'] as const
const ENDED = ['completed', 'failed'] as const

const INSERT = `insert into steps
  (id, tenant, agent, sandbox, session, step_id, code_hash, actor, recorded, max_output_bytes, decision,
   status, error, cause, restarted, truncated, output_bytes, usage, started_at, ended_at)
  values ($1, $2, $3, $4, (select id from sessions where id = $5 and state = 'active'), $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
  on conflict do nothing`

const END = `update steps
  set status = $2, error = $3, cause = $4, restarted = $5, truncated = $6, output_bytes = $7, usage = $8,
      started_at = $9, ended_at = $10
  where id = $1 and status in ('accepted', 'running')`

/**
 * Takes the step's id in its session. False when the id is taken by another step: that is what makes it run at most once.
 * Ours are new, so the same row came from us, by a try whose answer was lost. Throws when the session is not active, see
 * `Store.isMissing`: its end takes the steps along, so none may come after it.
 */
export async function insertStep(db: Queries, step: StoredStep): Promise<boolean> {
  const { id, tenant, agent, sandbox, session, stepId, codeHash, actor, recorded, maxOutputBytes } = step
  const { changes } = await rawQuery(db, INSERT, [
    id,
    tenant,
    agent,
    sandbox,
    session,
    stepId,
    codeHash,
    actor,
    recorded ? 1 : 0,
    maxOutputBytes,
    step.decision && JSON.stringify(step.decision),
    ...endColumns(step),
  ])
  if (changes > 0) return true
  return (await findStepByKey(db, { session: step.session, stepId: step.stepId }))?.id === step.id
}

export async function findStep(
  db: Queries,
  of: { readonly session: string; readonly step: string },
): Promise<StoredStep | undefined> {
  const query = db.selectFrom('steps').selectAll().where('id', '=', of.step).where('session', '=', of.session)
  const row = await query.executeTakeFirst()
  return row && storedStep.parse(row)
}

/** By its sandbox, whichever session it is of. */
export async function findStepOf(
  db: Queries,
  of: { readonly sandbox: string; readonly step: string },
): Promise<StoredStep | undefined> {
  const query = db.selectFrom('steps').selectAll().where('id', '=', of.step).where('sandbox', '=', of.sandbox)
  const row = await query.executeTakeFirst()
  return row && storedStep.parse(row)
}

/** By the caller's own id. */
export async function findStepByKey(
  db: Queries,
  of: { readonly session: string; readonly stepId: string },
): Promise<StoredStep | undefined> {
  const query = db.selectFrom('steps').selectAll().where('session', '=', of.session).where('stepId', '=', of.stepId)
  const row = await query.executeTakeFirst()
  return row && storedStep.parse(row)
}

/** Newest first: ids sort by age. */
export async function listSteps(
  db: Queries,
  filter: { readonly session: string; readonly before: string | undefined; readonly limit: number },
): Promise<readonly StoredStep[]> {
  let query = db.selectFrom('steps').selectAll().where('session', '=', filter.session)
  if (filter.before !== undefined) query = query.where('id', '<', filter.before)
  return z.array(storedStep).parse(await query.orderBy('id', 'desc').limit(filter.limit).execute())
}

export async function listUnendedSteps(db: Queries, node: string): Promise<readonly StoredStep[]> {
  return z.array(storedStep).parse(await onNode(db, node).where('steps.status', 'in', UNENDED).execute())
}

/** Ended steps of a node whose last record may be missing in the evidence. */
export async function listOwedSteps(
  db: Queries,
  of: { readonly node: string; readonly after: string; readonly limit: number },
): Promise<readonly StoredStep[]> {
  const query = onNode(db, of.node).where('steps.status', 'in', ENDED).where('steps.recorded', '=', 0)
  return z
    .array(storedStep)
    .parse(await query.where('steps.id', '>', of.after).orderBy('steps.id').limit(of.limit).execute())
}

/** The first end counts: false when the step has one already. */
export async function endStep(db: Queries, id: string, end: StepEnd): Promise<boolean> {
  return (await rawQuery(db, END, [id, ...endColumns(end)])).changes > 0
}

/** What still ran in a sandbox that is gone has no result, and `error` says so. */
export async function loseStepsOf(
  db: Queries,
  sandbox: string,
  end: { readonly at: number; readonly error: NonNullable<StoredStep['error']>; readonly cause: EndCause },
): Promise<readonly StoredStep[]> {
  const rows = await db
    .updateTable('steps')
    .set({ status: 'failed', endedAt: end.at, error: JSON.stringify(end.error), cause: end.cause })
    .where('sandbox', '=', sandbox)
    .where('status', 'in', UNENDED)
    .returningAll()
    .execute()
  return z.array(storedStep).parse(rows)
}

/** For a step that never began: its id is free again. */
export async function deleteStep(db: Queries, id: string): Promise<void> {
  await db.deleteFrom('steps').where('id', '=', id).execute()
}

export async function setStepsRecorded(db: Queries, ids: readonly string[]): Promise<void> {
  await db.updateTable('steps').set({ recorded: 1 }).where('id', 'in', ids).execute()
}

/** In the order in which `INSERT` and `END` name them. */
function endColumns(end: StepEnd): readonly (string | number | null)[] {
  const { status, error, cause, restarted, truncated, outputBytes, usage, startedAt, endedAt } = end
  const said = [status, error && JSON.stringify(error), cause, restarted ? 1 : 0, truncated ? 1 : 0]
  return [...said, outputBytes, usage && JSON.stringify(usage), startedAt, endedAt]
}

function onNode(db: Queries, node: string) {
  return db
    .selectFrom('steps')
    .innerJoin('sandboxes', 'sandboxes.id', 'steps.sandbox')
    .selectAll('steps')
    .where('sandboxes.node', '=', node)
}
