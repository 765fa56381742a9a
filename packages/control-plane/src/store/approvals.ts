import { approvalScope, approvalState, type ApprovalState, decision, point, question } from '@airlock/contract'
import { type Expression, type ExpressionBuilder, sql } from 'kysely'
import { z } from 'zod'
import { jsonColumn } from './engine/json-column.ts'
import type { Tables } from './engine/schema.ts'
import type { Queries } from './engine/store.ts'

const storedApproval = z.object({
  id: z.string(),
  tenant: z.string(),
  requester: z.string(),
  agent: z.string().nullable(),
  sandbox: z.string().nullable(),
  point,
  summary: z.string(),
  hash: z.string(),
  /** The same without the sandbox: what the scope `agent` is found by. */
  wideHash: z.string(),
  decision: jsonColumn(decision),
  state: approvalState,
  scope: approvalScope.nullable(),
  createdAt: z.int(),
  /** When its state was last another one. */
  changedAt: z.int(),
  expiresAt: z.int(),
  answeredBy: z.string().nullable(),
  answeredAt: z.int().nullable(),
  note: z.string().nullable(),
  usedAt: z.int().nullable(),
  /** Which use it let pass. */
  usedBy: z.string().nullable(),
})
export type StoredApproval = z.infer<typeof storedApproval>

const withQuestion = storedApproval.extend({ question: jsonColumn(question) })
/** With what was asked, which may be large and is read only where it is shown. */
export type FullApproval = z.infer<typeof withQuestion>

const COLUMNS = [
  'id',
  'tenant',
  'requester',
  'agent',
  'sandbox',
  'point',
  'summary',
  'hash',
  'wideHash',
  'decision',
  'state',
  'scope',
  'createdAt',
  'changedAt',
  'expiresAt',
  'answeredBy',
  'answeredAt',
  'note',
  'usedAt',
  'usedBy',
] as const satisfies readonly (keyof StoredApproval)[]

/** False when another ask about the same request is pending: of two at once one is written. */
export async function insertPending(db: Queries, row: FullApproval): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('approvals')
    .values({ ...row, decision: JSON.stringify(row.decision), question: JSON.stringify(row.question) })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return Number(numInsertedOrUpdatedRows ?? 0) > 0
}

export async function findApproval(db: Queries, id: string): Promise<FullApproval | undefined> {
  const row = await db.selectFrom('approvals').selectAll().where('id', '=', id).executeTakeFirst()
  return row && withQuestion.parse(row)
}

/** What may matter to a request, newest first: about this very request, or approved for all sandboxes of its agent. */
export async function findRelated(
  db: Queries,
  of: { readonly tenant: string; readonly hash: string; readonly wideHash: string },
): Promise<readonly StoredApproval[]> {
  const rows = await db
    .selectFrom('approvals')
    .select(COLUMNS)
    .where('tenant', '=', of.tenant)
    .where((is) =>
      is.or([
        is.and([is('hash', '=', of.hash), is('state', 'in', ['pending', 'approved', 'rejected'])]),
        is.and([is('wideHash', '=', of.wideHash), is('state', '=', 'approved'), is('scope', '=', 'agent')]),
      ]),
    )
    .orderBy('id', 'desc')
    .limit(RELATED)
    .execute()
  return z.array(storedApproval).parse(rows)
}

const RELATED = 100

export interface ApprovalFilter {
  readonly tenant: string
  readonly state: ApprovalState | 'all'
  /** Only about these; null is everything of the tenant. */
  readonly agents: readonly string[] | null
  readonly before: string | undefined
  readonly limit: number
}

/** Newest first: ids sort by age. */
export async function listApprovals(db: Queries, filter: ApprovalFilter): Promise<readonly StoredApproval[]> {
  if (filter.agents?.length === 0) return []
  let query = db
    .selectFrom('approvals')
    .select(COLUMNS)
    .where('tenant', '=', filter.tenant)
    .orderBy('id', 'desc')
    .limit(filter.limit)
  if (filter.state !== 'all') query = query.where('state', '=', filter.state)
  if (filter.agents) query = query.where('agent', 'in', filter.agents)
  if (filter.before !== undefined) query = query.where('id', '<', filter.before)
  return z.array(storedApproval).parse(await query.execute())
}

/** Those whose state changed after another one did, oldest change first. */
export async function listChanged(
  db: Queries,
  of: {
    readonly tenant: string
    readonly after: Pick<StoredApproval, 'changedAt' | 'id'>
    readonly limit: number
  },
): Promise<readonly StoredApproval[]> {
  const rows = await db
    .selectFrom('approvals')
    .select(COLUMNS)
    .where('tenant', '=', of.tenant)
    .where((is) =>
      is.or([
        is('changedAt', '>', of.after.changedAt),
        is.and([is('changedAt', '=', of.after.changedAt), is('id', '>', of.after.id)]),
      ]),
    )
    .orderBy('changedAt')
    .orderBy('id')
    .limit(of.limit)
    .execute()
  return z.array(storedApproval).parse(rows)
}

/** How many asks wait: of a tenant, of one of its agents, and of one requester. */
export async function countPending(
  db: Queries,
  of: { readonly tenant: string; readonly agent: string | null; readonly requester: string; readonly now: number },
): Promise<{ readonly ofTenant: number; readonly ofAgent: number; readonly ofRequester: number }> {
  const rows = await db
    .selectFrom('approvals')
    .select(({ fn }) => ['agent', 'requester', fn.countAll().as('count')])
    .where('tenant', '=', of.tenant)
    .where('state', '=', 'pending')
    .where('expiresAt', '>', of.now)
    .groupBy(['agent', 'requester'])
    .execute()
  const sum = (some: typeof rows) => some.reduce((total, { count }) => total + Number(count), 0)
  return {
    ofTenant: sum(rows),
    ofAgent: sum(rows.filter(({ agent }) => agent === of.agent)),
    ofRequester: sum(rows.filter(({ requester }) => requester === of.requester)),
  }
}

export interface ApprovalMove {
  readonly id: string
  readonly from: 'pending' | 'approved'
  /** It must not have expired by then; absent where that does not matter. */
  readonly goodAt?: number
}

type Changes = Partial<
  Pick<
    StoredApproval,
    'state' | 'scope' | 'expiresAt' | 'answeredBy' | 'answeredAt' | 'note' | 'usedAt' | 'usedBy' | 'changedAt'
  >
>

/** Compare and set: of any number who try to move one on, one does. Answers the row as it is then, to that one alone. */
export async function moveApproval(
  db: Queries,
  move: ApprovalMove,
  changes: Changes & { readonly state: ApprovalState },
): Promise<StoredApproval | undefined> {
  let query = db.updateTable('approvals').set(changes).where('id', '=', move.id).where('state', '=', move.from)
  if (move.goodAt !== undefined) query = query.where('expiresAt', '>', move.goodAt)
  const row = await query.returning(COLUMNS).executeTakeFirst()
  return row && storedApproval.parse(row)
}

/** Its time is over, or it waits for a program whose sandbox has ended: its answer would be for nobody. */
function isOver(is: ExpressionBuilder<Tables, 'approvals'>, now: Expression<number>) {
  const ended = is
    .selectFrom('sandboxes')
    .select('sandboxes.id')
    .whereRef('sandboxes.id', '=', 'approvals.sandbox')
    .where('sandboxes.state', 'in', ['stopped', 'error'])
  const isForNobody = is.and([
    is('state', '=', 'pending'),
    is('point', 'in', ['sandbox.ask', 'model.call']),
    is.exists(ended),
  ])
  return is.or([is('expiresAt', '<=', now), isForNobody])
}

/** Marks what has expired, at most some of it at once. Of several nodes each row is answered to one. */
export async function expireDue(db: Queries, now: Expression<number>): Promise<readonly StoredApproval[]> {
  const due = db
    .selectFrom('approvals')
    .select('id')
    .where('state', 'in', ['pending', 'approved'])
    .where((is) => isOver(is, now))
    .orderBy('expiresAt')
    .limit(DUE)
  const rows = await db
    .updateTable('approvals')
    .set({ state: 'expired', changedAt: now })
    .where('id', 'in', due)
    .where('state', 'in', ['pending', 'approved'])
    .where((is) => isOver(is, now))
    .returning(COLUMNS)
    .execute()
  return z.array(storedApproval).parse(rows)
}

const DUE = 200

/** Rows are for who asks and answers; what was answered stays in the evidence. */
export async function removeEnded(
  db: Queries,
  of: { readonly now: Expression<number>; readonly keptMs: number },
): Promise<void> {
  await db
    .deleteFrom('approvals')
    .where('state', 'in', ['rejected', 'expired', 'revoked', 'used'])
    .where('expiresAt', '<', sql<number>`${of.now} - ${sql.lit(of.keptMs)}`)
    .execute()
}
