import { role } from '@airlock/contract'
import { sql } from 'kysely'
import { z } from 'zod'
import { flagColumn, jsonColumn } from './engine/json-column.ts'
import { rawQuery } from './engine/raw-query.ts'
import { rowParser } from './engine/row-parser.ts'
import type { Queries } from './engine/store.ts'

const storedApiKey = z.object({
  id: z.string(),
  /** SHA-256 of the secret, hexadecimal. */
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  tenant: z.string(),
  role,
  agents: jsonColumn(z.array(z.string())).nullable(),
  purpose: z.string().nullable(),
  createdAt: z.int(),
  expiresAt: z.int().nullable(),
  revokedAt: z.int().nullable(),
  name: z.string(),
  platform: flagColumn,
  createdBy: z.string(),
  lastUsedAt: z.int().nullable(),
  replaces: z.string().nullable(),
  person: z.string().nullable(),
})
export type StoredApiKey = z.infer<typeof storedApiKey>
const parseKnown = rowParser(storedApiKey)

export async function insertApiKey(db: Queries, key: StoredApiKey): Promise<void> {
  await db
    .insertInto('apiKeys')
    .values({ ...key, agents: key.agents && JSON.stringify(key.agents), platform: key.platform ? 1 : 0 })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export async function findApiKey(db: Queries, id: string): Promise<StoredApiKey | undefined> {
  const { rows } = await rawQuery(db, 'select * from api_keys where id = $1', [id])
  return rows[0] && parseKnown(rows[0])
}

const keyOrigin = storedApiKey.pick({ id: true, replaces: true, createdBy: true, person: true })
export type KeyOrigin = z.infer<typeof keyOrigin>

/** A key and all keys that it took over from; with `makers` also those that made or rotated one of them, and so on. At most `limit`. */
export async function listKeyLine(
  db: Queries,
  of: { readonly id: string; readonly through: 'rotations' | 'rotations and makers'; readonly limit: number },
): Promise<readonly KeyOrigin[]> {
  const makers = of.through === 'rotations' ? 0 : 1
  const { rows } = await sql`
    with recursive line(id) as (
      select cast(${of.id} as text)
      union
      select case way.n when 0 then k.replaces else substr(k.created_by, 5) end
      from line
      join api_keys k on k.id = line.id
      join (select 0 as n union all select 1 as n) way
        on (way.n = 0 and k.replaces is not null)
        or (way.n = 1 and 1 = ${sql.lit(makers)} and k.created_by like 'key:%')
    )
    select k.id, k.replaces, k.created_by, k.person from line join api_keys k on k.id = line.id limit ${of.limit}
  `.execute(db)
  return z.array(keyOrigin).parse(rows)
}

export interface KeyFilter {
  readonly tenant: string
  /** Only those that are good at this time; all of them when undefined. */
  readonly goodAt: number | undefined
  /** Keys that were made before this one. */
  readonly before: string | undefined
  readonly limit: number
}

/** Newest first. Ids are random, so a page goes on by the time of its last key and then by id. */
export async function pageApiKeys(db: Queries, filter: KeyFilter): Promise<readonly StoredApiKey[]> {
  const { goodAt, before } = filter
  let query = db
    .selectFrom('apiKeys')
    .selectAll()
    .where('tenant', '=', filter.tenant)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(filter.limit)
  if (goodAt !== undefined)
    query = query
      .where('revokedAt', 'is', null)
      .where((is) => is.or([is('expiresAt', 'is', null), is('expiresAt', '>', goodAt)]))
  const last = before === undefined ? undefined : await findApiKey(db, before)
  if (last?.tenant === filter.tenant)
    query = query.where((is) =>
      is.or([
        is('createdAt', '<', last.createdAt),
        is.and([is('createdAt', '=', last.createdAt), is('id', '<', last.id)]),
      ]),
    )
  return z.array(storedApiKey).parse(await query.execute())
}

/** Of all tenants: who may turn a killswitch on. Those of the platform first, then the newest. */
export async function listGuardKeys(
  db: Queries,
  of: { readonly goodAt: number; readonly limit: number },
): Promise<readonly StoredApiKey[]> {
  const rows = await db
    .selectFrom('apiKeys')
    .selectAll()
    .where('role', 'in', ['admin', 'operator'])
    .where('agents', 'is', null)
    .where('revokedAt', 'is', null)
    .where((is) => is.or([is('expiresAt', 'is', null), is('expiresAt', '>', of.goodAt)]))
    .orderBy('platform', 'desc')
    .orderBy('createdAt', 'desc')
    .limit(of.limit)
    .execute()
  return rows.map((row) => parseKnown(row))
}

export async function countGoodApiKeys(db: Queries, tenant: string, now: number): Promise<number> {
  const { count } = await db
    .selectFrom('apiKeys')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('tenant', '=', tenant)
    .where('revokedAt', 'is', null)
    .where((is) => is.or([is('expiresAt', 'is', null), is('expiresAt', '>', now)]))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** A key that is revoked stays so, at its first time. */
export async function revokeApiKey(db: Queries, id: string, at: number): Promise<void> {
  await db.updateTable('apiKeys').set({ revokedAt: at }).where('id', '=', id).where('revokedAt', 'is', null).execute()
}

/** Only ever shortens the life of a key. */
export async function expireApiKey(db: Queries, id: string, at: number): Promise<void> {
  await db
    .updateTable('apiKeys')
    .set({ expiresAt: at })
    .where('id', '=', id)
    .where((is) => is.or([is('expiresAt', 'is', null), is('expiresAt', '>', at)]))
    .execute()
}

export async function revokeApiKeysOf(
  db: Queries,
  of: { readonly tenant: string; readonly purpose: string },
  at: number,
): Promise<void> {
  await db
    .updateTable('apiKeys')
    .set({ revokedAt: at })
    .where('tenant', '=', of.tenant)
    .where('purpose', '=', of.purpose)
    .where('revokedAt', 'is', null)
    .execute()
}

/** Times only ever move forward, whoever writes last. */
export async function setKeyUsed(db: Queries, id: string, at: number): Promise<void> {
  await db
    .updateTable('apiKeys')
    .set({ lastUsedAt: at })
    .where('id', '=', id)
    .where((is) => is.or([is('lastUsedAt', 'is', null), is('lastUsedAt', '<', at)]))
    .execute()
}

/** Whose keys are good for the whole server. */
export async function listPlatformTenants(db: Queries, now: number): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('apiKeys')
    .select('tenant')
    .distinct()
    .where('platform', '=', 1)
    .where('revokedAt', 'is', null)
    .where((is) => is.or([is('expiresAt', 'is', null), is('expiresAt', '>', now)]))
    .orderBy('tenant')
    .execute()
  return rows.map(({ tenant }) => tenant)
}
