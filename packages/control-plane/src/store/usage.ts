import type { UsageGroup } from '@airlock/contract'
import { z } from 'zod'
import type { UsageFactTable } from './engine/schema.ts'
import type { Queries } from './engine/store.ts'
import { summedAmount as amount, sumOf } from './engine/sums.ts'

export type StoredUsageFact = Readonly<UsageFactTable>

/** What all facts about compute have in common. */
export const COMPUTE = {
  source: 'compute',
  microDollars: 0,
  model: null,
  upstream: null,
  inputTokens: null,
  outputTokens: null,
  cacheReadTokens: null,
  cacheWriteTokens: null,
  estimated: 0,
  calls: 0,
  chargedTokens: 0,
} as const

/** What facts add up to. */
export interface Spent {
  readonly computeMs: number
  readonly microDollars: number
  /** Of models. */
  readonly calls: number
  readonly tokens: number
}

const spent = z.object({ computeMs: amount, microDollars: amount, calls: amount, tokens: amount })

/** A fact that is there stays as it is: the same key is the same fact. */
export async function insertUsageFact(db: Queries, fact: StoredUsageFact): Promise<void> {
  await db
    .insertInto('usageFacts')
    .values(fact)
    .onConflict((conflict) => conflict.columns(['source', 'key']).doNothing())
    .execute()
}

/** What an agent, or with null its whole tenant, used up on a day. */
export async function sumSpent(
  db: Queries,
  of: { readonly tenant: string; readonly agent: string | null; readonly day: string },
): Promise<Spent> {
  let query = db
    .selectFrom('usageFacts')
    .select([
      sumOf('computeMs').as('computeMs'),
      sumOf('microDollars').as('microDollars'),
      sumOf('calls').as('calls'),
      sumOf('chargedTokens').as('tokens'),
    ])
    .where('tenant', '=', of.tenant)
    .where('day', '=', of.day)
  if (of.agent !== null) query = query.where('agent', '=', of.agent)
  return spent.parse(await query.executeTakeFirstOrThrow())
}

/** What the model calls of a sandbox used up in its whole life. */
export async function sumSpentBySandbox(db: Queries, sandbox: string): Promise<Spent> {
  const row = await db
    .selectFrom('usageFacts')
    .select([
      sumOf('computeMs').as('computeMs'),
      sumOf('microDollars').as('microDollars'),
      sumOf('calls').as('calls'),
      sumOf('chargedTokens').as('tokens'),
    ])
    .where('sandbox', '=', sandbox)
    .where('source', '=', 'model')
    .executeTakeFirstOrThrow()
  return spent.parse(row)
}

const billed = z.object({ facts: amount, wallMs: amount, cpuMs: amount, computeMs: amount })

/** What is in the ledger for a sandbox already. */
export async function sumBilled(db: Queries, sandbox: string): Promise<z.infer<typeof billed>> {
  const row = await db
    .selectFrom('usageFacts')
    .select(({ fn }) => [
      fn.countAll().as('facts'),
      sumOf('wallMs').as('wallMs'),
      sumOf('cpuMs').as('cpuMs'),
      sumOf('computeMs').as('computeMs'),
    ])
    .where('sandbox', '=', sandbox)
    .where('source', '=', 'compute')
    .executeTakeFirstOrThrow()
  return billed.parse(row)
}

export interface UsageFilter {
  readonly tenant: string
  /** Null: all of them. */
  readonly agents: readonly string[] | null
  readonly sandbox?: string | undefined
  readonly model?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Undefined: day and agent. */
  readonly by?: UsageGroup | undefined
  readonly limit: number
}

const name = z.string().nullable()
const summed = z.object({
  day: name,
  agent: name,
  sandbox: name,
  model: name,
  sandboxes: amount,
  wallMs: amount,
  cpuMs: amount,
  computeMs: amount,
  calls: amount,
  estimatedCalls: amount,
  inputTokens: amount,
  outputTokens: amount,
  cacheReadTokens: amount,
  cacheWriteTokens: amount,
  microDollars: amount,
})

type GroupColumn = 'day' | 'agent' | 'sandbox' | 'model'

const GROUPS: Readonly<Record<UsageGroup, readonly GroupColumn[]>> = {
  day: ['day'],
  agent: ['agent'],
  sandbox: ['agent', 'sandbox'],
  model: ['model'],
}

const DAY_AND_AGENT: readonly GroupColumn[] = ['day', 'agent']

const SUMS = [
  'wallMs',
  'cpuMs',
  'computeMs',
  'calls',
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'microDollars',
] as const

/** The latest day first, then by name. */
export async function sumUsage(db: Queries, filter: UsageFilter): Promise<readonly z.infer<typeof summed>[]> {
  const { agents, by } = filter
  if (agents?.length === 0) return []
  const columns = by === undefined ? DAY_AND_AGENT : GROUPS[by]
  let query = db
    .selectFrom('usageFacts')
    .select(({ fn }) => [
      ...columns,
      fn.count('sandbox').distinct().as('sandboxes'),
      sumOf('estimated').as('estimatedCalls'),
      ...SUMS.map((column) => sumOf(column).as(column)),
    ])
    .where('tenant', '=', filter.tenant)
    .groupBy([...columns])
    .limit(filter.limit)
  for (const column of columns) query = query.orderBy(column, column === 'day' ? 'desc' : 'asc')
  if (by === 'model') query = query.where('source', '=', 'model')
  if (agents) query = query.where('agent', 'in', agents)
  if (filter.sandbox !== undefined) query = query.where('sandbox', '=', filter.sandbox)
  if (filter.model !== undefined) query = query.where('model', '=', filter.model)
  if (filter.from !== undefined) query = query.where('day', '>=', filter.from)
  if (filter.to !== undefined) query = query.where('day', '<=', filter.to)
  const ungrouped = { day: null, agent: null, sandbox: null, model: null }
  return (await query.execute()).map((row) => summed.parse({ ...ungrouped, ...row }))
}
