import { labels, runtime, sessionEndReason, type SessionState, sessionState } from '@airlock/contract'
import { z } from 'zod'
import { flagColumn, jsonColumn } from './engine/json-column.ts'
import { LIVING_STATES } from './sandboxes.ts'
import { later } from './engine/later.ts'
import { rawQuery } from './engine/raw-query.ts'
import { rowParser } from './engine/row-parser.ts'
import type { Queries } from './engine/store.ts'

const storedSession = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string(),
  sandbox: z.string(),
  ownsSandbox: flagColumn,
  runtime,
  /** Empty while it is being opened: until then nobody is told of it. */
  runtimeVersion: z.string(),
  state: sessionState,
  labels: jsonColumn(labels),
  ttlMs: z.int(),
  restarts: z.int(),
  createdAt: z.int(),
  lastActiveAt: z.int(),
  expiresAt: z.int(),
  endedAt: z.int().nullable(),
  endReason: sessionEndReason.nullable(),
  /** Who asked for it. */
  actor: z.string(),
  recorded: flagColumn,
})
export type StoredSession = z.infer<typeof storedSession>
const parseKnown = rowParser(storedSession)

export type SessionEnd = Pick<StoredSession, 'endedAt' | 'endReason'> &
  Partial<Pick<StoredSession, 'lastActiveAt' | 'expiresAt'>> & { readonly state: Exclude<SessionState, 'active'> }

/** Ids are new, so one that is there came from us, by a try whose answer was lost. */
export async function insertSession(db: Queries, session: StoredSession): Promise<void> {
  await db
    .insertInto('sessions')
    .values({
      ...session,
      labels: JSON.stringify(session.labels),
      ownsSandbox: session.ownsSandbox ? 1 : 0,
      recorded: session.recorded ? 1 : 0,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export async function findSession(db: Queries, id: string): Promise<StoredSession | undefined> {
  const { rows } = await rawQuery(db, 'select * from sessions where id = $1', [id])
  return rows[0] && parseKnown(rows[0])
}

export interface SessionFilter {
  readonly tenant: string
  readonly agents: readonly string[] | null
  readonly states: readonly SessionState[]
  readonly sandbox: string | undefined
  /** Answers sessions older than this one. */
  readonly before: string | undefined
  readonly limit: number
}

/** Newest first: ids sort by age. */
export async function listSessions(db: Queries, filter: SessionFilter): Promise<readonly StoredSession[]> {
  if (filter.agents?.length === 0) return []
  let query = db
    .selectFrom('sessions')
    .selectAll()
    .where('tenant', '=', filter.tenant)
    .where('state', 'in', filter.states)
    .where('runtimeVersion', '<>', '')
    .orderBy('id', 'desc')
    .limit(filter.limit)
  if (filter.agents) query = query.where('agent', 'in', filter.agents)
  if (filter.sandbox !== undefined) query = query.where('sandbox', '=', filter.sandbox)
  if (filter.before !== undefined) query = query.where('id', '<', filter.before)
  return z.array(storedSession).parse(await query.execute())
}

/** Active sessions of a node that are over by what is written, or were never opened. */
export async function listDueSessions(
  db: Queries,
  of: { readonly node: string; readonly now: number; readonly limit: number },
): Promise<readonly StoredSession[]> {
  const query = onNode(db, of.node)
    .where('sessions.state', '=', 'active')
    // The time of those in a paused sandbox does not run.
    .where('sandboxes.state', '<>', 'paused')
    .where((is) => is.or([is('sessions.expiresAt', '<=', of.now), is('sessions.runtimeVersion', '=', '')]))
  return z.array(storedSession).parse(await query.orderBy('sessions.id').limit(of.limit).execute())
}

/** Ended sessions of a node whose own sandbox lives on. */
export async function listOutlived(
  db: Queries,
  of: { readonly node: string; readonly limit: number },
): Promise<readonly StoredSession[]> {
  const query = onNode(db, of.node)
    .where('sessions.ownsSandbox', '=', 1)
    .where('sessions.state', '<>', 'active')
    .where('sandboxes.state', 'in', LIVING_STATES)
  return z.array(storedSession).parse(await query.orderBy('sessions.id').limit(of.limit).execute())
}

/** Ended sessions of a node whose last record may be missing in the evidence. */
export async function listOwedSessions(
  db: Queries,
  of: { readonly node: string; readonly after: string; readonly limit: number },
): Promise<readonly StoredSession[]> {
  const query = onNode(db, of.node).where('sessions.state', '<>', 'active').where('sessions.recorded', '=', 0)
  return z
    .array(storedSession)
    .parse(await query.where('sessions.id', '>', of.after).orderBy('sessions.id').limit(of.limit).execute())
}

/** It answers now, and this is what it calls itself. */
export async function updateRuntime(
  db: Queries,
  id: string,
  found: Pick<StoredSession, 'runtimeVersion' | 'restarts'>,
): Promise<StoredSession | undefined> {
  const row = await db
    .updateTable('sessions')
    .set({ runtimeVersion: found.runtimeVersion, restarts: found.restarts })
    .where('id', '=', id)
    .where('state', '=', 'active')
    .returningAll()
    .executeTakeFirst()
  return row && storedSession.parse(row)
}

export async function countRestart(db: Queries, id: string): Promise<void> {
  await db
    .updateTable('sessions')
    .set((is) => ({ restarts: is('restarts', '+', 1) }))
    .where('id', '=', id)
    .execute()
}

export async function updateSessionUse(
  db: Queries,
  id: string,
  use: { readonly lastActiveAt: number; readonly expiresAt: number },
): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ lastActiveAt: later('lastActiveAt', use.lastActiveAt), expiresAt: later('expiresAt', use.expiresAt) })
    .where('id', '=', id)
    .where('state', '=', 'active')
    .execute()
}

/** Their time stood still with their sandbox. */
export async function extendSessionsOf(db: Queries, sandbox: string, ms: number): Promise<void> {
  await db
    .updateTable('sessions')
    .set((is) => ({ expiresAt: is('expiresAt', '+', ms) }))
    .where('sandbox', '=', sandbox)
    .where('state', '=', 'active')
    .execute()
}

/** The first end counts: undefined when the session has one already. */
export async function endSession(db: Queries, id: string, end: SessionEnd): Promise<StoredSession | undefined> {
  const query = db.updateTable('sessions').set(end).where('id', '=', id).where('state', '=', 'active')
  const row = await query.returningAll().executeTakeFirst()
  return row && storedSession.parse(row)
}

/** No session outlives its sandbox. */
export async function endSessionsOf(db: Queries, sandbox: string, at: number): Promise<readonly StoredSession[]> {
  const rows = await db
    .updateTable('sessions')
    .set({ state: 'terminated', endedAt: at, endReason: 'sandbox_ended' })
    .where('sandbox', '=', sandbox)
    .where('state', '=', 'active')
    .returningAll()
    .execute()
  return z.array(storedSession).parse(rows)
}

export async function setSessionsRecorded(db: Queries, ids: readonly string[]): Promise<void> {
  await db.updateTable('sessions').set({ recorded: 1 }).where('id', 'in', ids).execute()
}

function onNode(db: Queries, node: string) {
  return db
    .selectFrom('sessions')
    .innerJoin('sandboxes', 'sandboxes.id', 'sessions.sandbox')
    .selectAll('sessions')
    .where('sandboxes.node', '=', node)
}
