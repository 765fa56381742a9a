import { policyDocument } from '@airlock/contract'
import { z } from 'zod'
import { jsonColumn } from './engine/json-column.ts'
import type { Queries } from './engine/store.ts'

/** Of the whole server; everything else is the name of a tenant. */
export const PLATFORM = ''

const head = z.object({ scope: z.string(), name: z.string(), version: z.int() })
const storedPolicy = head.extend({
  /** Null: out of force since this version. */
  document: z.string().nullable(),
  createdAt: z.int(),
  createdBy: z.string(),
})

/** One version of a policy. Versions are only ever added. */
export type StoredPolicy = z.infer<typeof storedPolicy>
export type PolicyKey = Pick<StoredPolicy, 'scope' | 'name'>
export type PolicyHead = z.infer<typeof head>

/** The document as it was stored; null when it is out of force. */
export const storedDocument = jsonColumn(policyDocument)

/** Rises with every change of any policy, whoever wrote it. */
export async function policyRevision(db: Queries): Promise<number> {
  const row = await db
    .selectFrom('policies')
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return z.coerce.number().pipe(z.int()).parse(row.count)
}

/** The latest version of every policy; of some scopes alone where they are named. */
export async function listLatest(db: Queries, scopes?: readonly string[]): Promise<readonly StoredPolicy[]> {
  let query = db
    .selectFrom('policies')
    .selectAll('policies')
    .innerJoin(
      (latest) =>
        latest
          .selectFrom('policies')
          .select(({ fn }) => ['scope', 'name', fn.max('version').as('version')])
          .groupBy(['scope', 'name'])
          .as('latest'),
      (join) =>
        join
          .onRef('latest.scope', '=', 'policies.scope')
          .onRef('latest.name', '=', 'policies.name')
          .onRef('latest.version', '=', 'policies.version'),
    )
  if (scopes) query = query.where('policies.scope', 'in', scopes)
  const rows = await query.orderBy('policies.scope').orderBy('policies.name').execute()
  return z.array(storedPolicy).parse(rows)
}

/** The latest version, or one that is named. */
export async function findPolicy(db: Queries, of: PolicyKey, version?: number): Promise<StoredPolicy | undefined> {
  let query = db.selectFrom('policies').selectAll().where('scope', '=', of.scope).where('name', '=', of.name)
  if (version !== undefined) query = query.where('version', '=', version)
  const row = await query.orderBy('version', 'desc').limit(1).executeTakeFirst()
  return row && storedPolicy.parse(row)
}

/** Newest first. */
export async function listVersions(
  db: Queries,
  of: PolicyKey,
  page: { readonly before: number | undefined; readonly limit: number },
): Promise<readonly StoredPolicy[]> {
  let query = db.selectFrom('policies').selectAll().where('scope', '=', of.scope).where('name', '=', of.name)
  if (page.before !== undefined) query = query.where('version', '<', page.before)
  return z.array(storedPolicy).parse(await query.orderBy('version', 'desc').limit(page.limit).execute())
}

/** Throws when somebody else took the version: see `Store.isTaken`. */
export async function insertPolicy(db: Queries, policy: StoredPolicy): Promise<void> {
  await db.insertInto('policies').values(policy).execute()
}
