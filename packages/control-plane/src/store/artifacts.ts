import { artifactProvenance } from '@airlock/contract'
import { z } from 'zod'
import { jsonColumn } from './engine/json-column.ts'
import type { Queries } from './engine/store.ts'
import { sumOf, summedAmount } from './engine/sums.ts'

const storedArtifact = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string(),
  node: z.string(),
  state: z.enum(['writing', 'ready']),
  name: z.string(),
  size: z.int(),
  sha256: z.string().nullable(),
  mediaType: z.string(),
  sandbox: z.string().nullable(),
  command: z.string().nullable(),
  step: z.string().nullable(),
  job: z.string().nullable(),
  /** The try of its job. */
  attempt: z.int().nullable(),
  provenance: jsonColumn(artifactProvenance).nullable(),
  createdBy: z.string(),
  createdAt: z.int(),
  expiresAt: z.int(),
})
export type StoredArtifact = z.infer<typeof storedArtifact>

export async function insertArtifact(db: Queries, { provenance, ...row }: StoredArtifact): Promise<void> {
  await db
    .insertInto('artifacts')
    .values({ ...row, provenance: provenance && JSON.stringify(provenance) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

/** What a tenant has on all nodes, with what is set aside for artifacts that are being written. */
export async function countArtifacts(
  db: Queries,
  tenant: string,
): Promise<{ readonly count: number; readonly bytes: number }> {
  const row = await db
    .selectFrom('artifacts')
    .select(({ fn }) => [fn.countAll().as('count'), sumOf('size').as('bytes')])
    .where('tenant', '=', tenant)
    .executeTakeFirstOrThrow()
  return z.object({ count: summedAmount, bytes: summedAmount }).parse(row)
}

/** False when the row is gone: then nobody may have the artifact. */
export async function setArtifactReady(
  db: Queries,
  id: string,
  of: { readonly sha256: string; readonly size: number },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('artifacts')
    .set({ ...of, state: 'ready' })
    .where('id', '=', id)
    .where('state', '=', 'writing')
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Only what is ready. */
export async function findArtifact(db: Queries, id: string): Promise<StoredArtifact | undefined> {
  const row = await db
    .selectFrom('artifacts')
    .selectAll()
    .where('id', '=', id)
    .where('state', '=', 'ready')
    .executeTakeFirst()
  return row && storedArtifact.parse(row)
}

interface ListFilter {
  readonly tenant: string
  /** Null is all of them. */
  readonly agents: readonly string[] | null
  readonly sandbox?: string | undefined
  readonly command?: string | undefined
  readonly step?: string | undefined
  readonly job?: string | undefined
  readonly name?: string | undefined
  readonly before?: string | undefined
  readonly limit: number
}

/** Newest first. */
export async function listArtifacts(db: Queries, filter: ListFilter): Promise<readonly StoredArtifact[]> {
  if (filter.agents?.length === 0) return []
  let query = db.selectFrom('artifacts').selectAll().where('tenant', '=', filter.tenant).where('state', '=', 'ready')
  if (filter.agents) query = query.where('agent', 'in', filter.agents)
  for (const column of ['sandbox', 'command', 'step', 'job', 'name'] as const) {
    const value = filter[column]
    if (value !== undefined) query = query.where(column, '=', value)
  }
  if (filter.before !== undefined) query = query.where('id', '<', filter.before)
  return parseAll(await query.orderBy('id', 'desc').limit(filter.limit).execute())
}

/** What one try of a job left so far. */
export async function listArtifactsOfTry(
  db: Queries,
  of: { readonly job: string; readonly attempt: number },
): Promise<readonly StoredArtifact[]> {
  const query = db.selectFrom('artifacts').selectAll().where('job', '=', of.job).where('attempt', '=', of.attempt)
  return parseAll(await query.where('state', '=', 'ready').orderBy('id').execute())
}

/** True when it was there. */
export async function deleteArtifact(db: Queries, id: string): Promise<boolean> {
  const { numDeletedRows } = await db.deleteFrom('artifacts').where('id', '=', id).executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

/** Those of a node whose time is over, or that an earlier process did not finish to write. */
export async function listDeadArtifacts(
  db: Queries,
  of: { readonly node: string; readonly now: number; readonly writtenBefore: number; readonly limit: number },
): Promise<readonly StoredArtifact[]> {
  const query = db
    .selectFrom('artifacts')
    .selectAll()
    .where('node', '=', of.node)
    .where((eb) =>
      eb.or([
        eb.and([eb('state', '=', 'ready'), eb('expiresAt', '<=', of.now)]),
        eb.and([eb('state', '=', 'writing'), eb('createdAt', '<', of.writtenBefore)]),
      ]),
    )
  return parseAll(await query.limit(of.limit).execute())
}

/** Of these ids, those that have a row on a node, in any state. */
export async function knownArtifacts(
  db: Queries,
  of: { readonly node: string; readonly ids: readonly string[] },
): Promise<ReadonlySet<string>> {
  if (of.ids.length === 0) return new Set()
  const rows = await db
    .selectFrom('artifacts')
    .select('id')
    .where('node', '=', of.node)
    .where('id', 'in', of.ids)
    .execute()
  return new Set(rows.map(({ id }) => id))
}

function parseAll(rows: readonly unknown[]): readonly StoredArtifact[] {
  return z.array(storedArtifact).parse(rows)
}
