import { resourceUsage, stepError, stepStatus } from '@airlock/contract'
import { z } from 'zod'
import { flagColumn, jsonColumn } from './json-column.ts'
import type { Queries } from './store.ts'

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
})
export type StoredStep = z.infer<typeof storedStep>

/** How a step ended. */
export type StepEnd = Pick<
  StoredStep,
  'status' | 'error' | 'restarted' | 'truncated' | 'outputBytes' | 'usage' | 'startedAt' | 'endedAt'
>

const UNENDED = ['accepted', 'running'] as const
const ENDED = ['completed', 'failed'] as const

/**
 * Takes the step's id in its session. False when the id is taken by another step: that is what makes it run at most once.
 * Ours are new, so the same row came from us, by a try whose answer was lost.
 */
export async function insertStep(db: Queries, step: StoredStep): Promise<boolean> {
  const written = await db
    .insertInto('steps')
    .values({
      ...step,
      error: step.error && JSON.stringify(step.error),
      usage: step.usage && JSON.stringify(step.usage),
      restarted: step.restarted ? 1 : 0,
      truncated: step.truncated ? 1 : 0,
      recorded: step.recorded ? 1 : 0,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  if (Number(written.numInsertedOrUpdatedRows ?? 0) > 0) return true
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
  of: { readonly node: string; readonly limit: number },
): Promise<readonly StoredStep[]> {
  const query = onNode(db, of.node).where('steps.status', 'in', ENDED).where('steps.recorded', '=', 0)
  return z.array(storedStep).parse(await query.orderBy('steps.id').limit(of.limit).execute())
}

/** The first end counts: undefined when the step has one already. */
export async function endStep(db: Queries, id: string, end: StepEnd): Promise<StoredStep | undefined> {
  const row = await db
    .updateTable('steps')
    .set({
      ...end,
      error: end.error && JSON.stringify(end.error),
      usage: end.usage && JSON.stringify(end.usage),
      restarted: end.restarted ? 1 : 0,
      truncated: end.truncated ? 1 : 0,
    })
    .where('id', '=', id)
    .where('status', 'in', UNENDED)
    .returningAll()
    .executeTakeFirst()
  return row && storedStep.parse(row)
}

/** What still ran in a sandbox that is gone has no result, and `error` says so. */
export async function loseStepsOf(
  db: Queries,
  sandbox: string,
  end: { readonly at: number; readonly error: NonNullable<StoredStep['error']> },
): Promise<readonly StoredStep[]> {
  const rows = await db
    .updateTable('steps')
    .set({ status: 'failed', endedAt: end.at, error: JSON.stringify(end.error) })
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

function onNode(db: Queries, node: string) {
  return db
    .selectFrom('steps')
    .innerJoin('sandboxes', 'sandboxes.id', 'steps.sandbox')
    .selectAll('steps')
    .where('sandboxes.node', '=', node)
}
