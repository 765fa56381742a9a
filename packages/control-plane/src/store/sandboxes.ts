import {
  doorName,
  effectiveIsolation,
  endReason,
  labels,
  type Limits,
  limits,
  modelLimits,
  mount,
  pausedBy,
  sandbox as shownSandbox,
  type SandboxState,
  sandboxState,
} from '@airlock/contract'
import type { Insertable } from 'kysely'
import { z } from 'zod'
import { flagColumn, jsonColumn } from './engine/json-column.ts'
import type { SandboxTable } from './engine/schema.ts'
import { later } from './engine/later.ts'
import { rawQuery } from './engine/raw-query.ts'
import { rowParser } from './engine/row-parser.ts'
import type { Queries } from './engine/store.ts'

/** States in which a sandbox holds its name and its place on the node. */
export const LIVING_STATES = ['creating', 'active', 'paused', 'stopping'] as const satisfies readonly SandboxState[]

const storedError = z.object({ code: z.string(), message: z.string() })

const storedSandbox = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string(),
  generation: z.int(),
  name: z.string().nullable(),
  node: z.string(),
  /** The boot of the host that it was started in. */
  bootId: z.string(),
  template: z.string(),
  image: z.string().nullable(),
  state: sandboxState,
  labels: jsonColumn(labels),
  limits: jsonColumn(limits),
  mounts: jsonColumn(z.array(mount)),
  doors: jsonColumn(z.array(doorName)),
  models: jsonColumn(z.array(z.string())),
  modelLimits: jsonColumn(modelLimits),
  ttlMs: z.int(),
  idleMs: z.int(),
  onIdle: shownSandbox.shape.onIdle,
  maxPausedMs: z.int(),
  pausedAt: z.int().nullable(),
  pausedBy: pausedBy.nullable(),
  createdAt: z.int(),
  lastActiveAt: z.int(),
  expiresAt: z.int(),
  endsAt: z.int(),
  endedAt: z.int().nullable(),
  endReason: endReason.nullable(),
  error: jsonColumn(storedError).nullable(),
  isolation: jsonColumn(effectiveIsolation).nullable(),
  /** Who asked for it. */
  actor: z.string(),
  recorded: flagColumn,
})
export type StoredSandbox = z.infer<typeof storedSandbox>
const parseKnown = rowParser(storedSandbox)

/** What may change when a sandbox moves to another state. */
export type SandboxChanges = Partial<
  Pick<
    StoredSandbox,
    | 'isolation'
    | 'image'
    | 'lastActiveAt'
    | 'expiresAt'
    | 'pausedAt'
    | 'pausedBy'
    | 'endedAt'
    | 'endReason'
    | 'error'
    | 'recorded'
    | 'bootId'
  >
>

/** Ids are new, so one that is there came from us, by a try whose answer was lost. */
export async function insertSandbox(db: Queries, sandbox: StoredSandbox): Promise<void> {
  const { labels, limits, mounts, doors, models, modelLimits: caps, error, isolation, recorded, ...rest } = sandbox
  const row: Insertable<SandboxTable> = {
    ...rest,
    labels: JSON.stringify(labels),
    limits: JSON.stringify(limits),
    mounts: JSON.stringify(mounts),
    doors: JSON.stringify(doors),
    models: JSON.stringify(models),
    modelLimits: JSON.stringify(caps),
    error: error && JSON.stringify(error),
    isolation: isolation && JSON.stringify(isolation),
    recorded: recorded ? 1 : 0,
  }
  await db
    .insertInto('sandboxes')
    .values(row)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
  const pairs = Object.entries(labels).map(([key, value]) => ({ sandbox: sandbox.id, key, value }))
  if (pairs.length > 0)
    await db
      .insertInto('sandboxLabels')
      .values(pairs)
      .onConflict((conflict) => conflict.columns(['sandbox', 'key']).doNothing())
      .execute()
}

export async function findSandbox(db: Queries, id: string): Promise<StoredSandbox | undefined> {
  const { rows } = await rawQuery(db, 'select * from sandboxes where id = $1', [id])
  return rows[0] && parseKnown(rows[0])
}

export async function findLivingByName(
  db: Queries,
  of: { readonly tenant: string; readonly agent: string; readonly name: string },
): Promise<StoredSandbox | undefined> {
  const row = await db
    .selectFrom('sandboxes')
    .selectAll()
    .where('tenant', '=', of.tenant)
    .where('agent', '=', of.agent)
    .where('name', '=', of.name)
    .where('state', 'in', LIVING_STATES)
    .executeTakeFirst()
  return row && storedSandbox.parse(row)
}

export interface SandboxFilter {
  readonly tenant: string
  readonly agents: readonly string[] | null
  readonly states: readonly SandboxState[]
  readonly name: string | undefined
  readonly labels: Readonly<Record<string, string>>
  /** Answers sandboxes older than this one. */
  readonly before: string | undefined
  readonly limit: number
}

/** Newest first: ids sort by age. */
export async function listSandboxes(db: Queries, filter: SandboxFilter): Promise<readonly StoredSandbox[]> {
  if (filter.agents?.length === 0) return []
  let query = db
    .selectFrom('sandboxes')
    .selectAll()
    .where('tenant', '=', filter.tenant)
    .where('state', 'in', filter.states)
    .orderBy('id', 'desc')
    .limit(filter.limit)
  if (filter.agents) query = query.where('agent', 'in', filter.agents)
  if (filter.name !== undefined) query = query.where('name', '=', filter.name)
  if (filter.before !== undefined) query = query.where('id', '<', filter.before)
  for (const [key, value] of Object.entries(filter.labels))
    query = query.where((is) =>
      is.exists(
        is
          .selectFrom('sandboxLabels')
          .select('sandboxLabels.key')
          .whereRef('sandboxLabels.sandbox', '=', 'sandboxes.id')
          .where('sandboxLabels.key', '=', key)
          .where('sandboxLabels.value', '=', value),
      ),
    )
  return z.array(storedSandbox).parse(await query.execute())
}

export async function listLiving(db: Queries, node: string): Promise<readonly StoredSandbox[]> {
  const query = db.selectFrom('sandboxes').selectAll().where('node', '=', node)
  return z.array(storedSandbox).parse(await query.where('state', 'in', LIVING_STATES).execute())
}

/** The same by id alone: for who reads them a few at a time. */
export async function listLivingIds(db: Queries, node: string): Promise<readonly string[]> {
  const query = db.selectFrom('sandboxes').select('id').where('node', '=', node)
  return (await query.where('state', 'in', LIVING_STATES).orderBy('id').execute()).map(({ id }) => id)
}

export async function listByIds(db: Queries, ids: readonly [string, ...string[]]): Promise<readonly StoredSandbox[]> {
  const marks = ids.map((_, i) => `$${i + 1}`).join(', ')
  const { rows } = await rawQuery(db, `select * from sandboxes where id in (${marks}) order by id`, ids)
  return z.array(storedSandbox).parse(rows)
}

/** Those of a node that see something of it. */
export async function listLivingWithMounts(db: Queries, node: string): Promise<readonly StoredSandbox[]> {
  const query = db.selectFrom('sandboxes').selectAll().where('node', '=', node).where('mounts', '<>', '[]')
  return z.array(storedSandbox).parse(await query.where('state', 'in', LIVING_STATES).execute())
}

/** Of one agent, on one node. */
export async function listLivingOf(
  db: Queries,
  of: { readonly tenant: string; readonly agent: string; readonly node: string },
): Promise<readonly StoredSandbox[]> {
  const query = db
    .selectFrom('sandboxes')
    .selectAll()
    .where('tenant', '=', of.tenant)
    .where('agent', '=', of.agent)
    .where('node', '=', of.node)
  return z.array(storedSandbox).parse(await query.where('state', 'in', LIVING_STATES).execute())
}

/** Of some agents of a tenant, or with null of all, on one node; newest first. */
export async function listLivingHere(
  db: Queries,
  of: {
    readonly tenant: string
    readonly agents: readonly string[] | null
    readonly node: string
    readonly limit: number
  },
): Promise<readonly StoredSandbox[]> {
  if (of.agents?.length === 0) return []
  let query = db.selectFrom('sandboxes').selectAll().where('tenant', '=', of.tenant).where('node', '=', of.node)
  if (of.agents) query = query.where('agent', 'in', of.agents)
  const living = query.where('state', 'in', LIVING_STATES).orderBy('id', 'desc').limit(of.limit)
  return z.array(storedSandbox).parse(await living.execute())
}

/** Ended sandboxes of a node whose last record may be missing in the evidence. */
export async function listOwedSandboxes(
  db: Queries,
  of: { readonly node: string; readonly after: string; readonly limit: number },
): Promise<readonly StoredSandbox[]> {
  const query = db
    .selectFrom('sandboxes')
    .selectAll()
    .where('node', '=', of.node)
    .where('state', 'in', ['stopped', 'error'])
  return z
    .array(storedSandbox)
    .parse(await query.where('recorded', '=', 0).where('id', '>', of.after).orderBy('id').limit(of.limit).execute())
}

/** Sandboxes that were written off with their node, and whose record is not acknowledged; the lost node pays its own when it is back. */
export async function listOwedOfLost(
  db: Queries,
  of: { readonly notOf: string; readonly limit: number },
): Promise<readonly StoredSandbox[]> {
  const rows = await db
    .selectFrom('sandboxes')
    .selectAll()
    .where('state', '=', 'error')
    .where('recorded', '=', 0)
    .where('node', '<>', of.notOf)
    .where('error', 'like', '%"node_lost"%')
    .orderBy('id')
    .limit(of.limit)
    .execute()
  return z.array(storedSandbox).parse(rows)
}

export async function countLiving(
  db: Queries,
  of: {
    readonly node?: string
    readonly tenant?: string
    readonly agent?: string
    /** Null is all of them. */
    readonly agents?: readonly string[] | null
  },
): Promise<number> {
  if (of.agents?.length === 0) return 0
  let query = db
    .selectFrom('sandboxes')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('state', 'in', LIVING_STATES)
  if (of.node !== undefined) query = query.where('node', '=', of.node)
  if (of.tenant !== undefined) query = query.where('tenant', '=', of.tenant)
  if (of.agent !== undefined) query = query.where('agent', '=', of.agent)
  if (of.agents) query = query.where('agent', 'in', of.agents)
  return Number((await query.executeTakeFirstOrThrow()).count)
}

export async function countByState(db: Queries, node: string): Promise<ReadonlyMap<SandboxState, number>> {
  const rows = await db
    .selectFrom('sandboxes')
    .select(({ fn }) => ['state', fn.countAll().as('count')])
    .where('node', '=', node)
    .groupBy('state')
    .execute()
  return new Map(rows.map((row) => [sandboxState.parse(row.state), Number(row.count)]))
}

/** Compare and set; `lifecycle.ts` is the only caller, for it knows which moves are legal. */
export async function updateState(
  db: Queries,
  move: { readonly id: string; readonly from: SandboxState; readonly to: SandboxState },
  changes: SandboxChanges,
): Promise<StoredSandbox | undefined> {
  const { error, isolation, recorded, ...rest } = changes
  const row = await db
    .updateTable('sandboxes')
    .set({
      ...rest,
      ...(error === undefined ? {} : { error: error && JSON.stringify(error) }),
      ...(isolation === undefined ? {} : { isolation: isolation && JSON.stringify(isolation) }),
      ...(recorded === undefined ? {} : { recorded: recorded ? 1 : 0 }),
      state: move.to,
    })
    .where('id', '=', move.id)
    .where('state', '=', move.from)
    .returningAll()
    .executeTakeFirst()
  return row && storedSandbox.parse(row)
}

export async function updateUse(
  db: Queries,
  id: string,
  use: { readonly lastActiveAt: number; readonly expiresAt: number },
): Promise<void> {
  await db
    .updateTable('sandboxes')
    .set({ lastActiveAt: later('lastActiveAt', use.lastActiveAt), expiresAt: later('expiresAt', use.expiresAt) })
    .where('id', '=', id)
    .where('state', 'in', LIVING_STATES)
    .execute()
}

/** Undefined when it has ended meanwhile. */
export async function updateLimits(db: Queries, id: string, to: Limits): Promise<StoredSandbox | undefined> {
  const row = await db
    .updateTable('sandboxes')
    .set({ limits: JSON.stringify(to) })
    .where('id', '=', id)
    .where('state', 'in', ['active', 'paused'])
    .returningAll()
    .executeTakeFirst()
  return row && storedSandbox.parse(row)
}

export async function setSandboxesRecorded(db: Queries, ids: readonly string[]): Promise<void> {
  await db.updateTable('sandboxes').set({ recorded: 1 }).where('id', 'in', ids).execute()
}

/** Somebody asked for what idleness had brought about: now it stays paused until somebody asks otherwise. */
export async function setPausedByRequest(db: Queries, id: string): Promise<StoredSandbox | undefined> {
  const row = await db
    .updateTable('sandboxes')
    .set({ pausedBy: 'request' })
    .where('id', '=', id)
    .where('state', '=', 'paused')
    .returningAll()
    .executeTakeFirst()
  return row && storedSandbox.parse(row)
}
