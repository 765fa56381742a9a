import type { BudgetLimits } from '@airlock/contract'
import { z } from 'zod'
import type { BudgetTable, ReservationTable } from './engine/schema.ts'
import type { Queries } from './engine/store.ts'

/** Whose budget: an agent's, or with null that of its tenant as a whole. */
export interface BudgetScope {
  readonly tenant: string
  readonly agent: string | null
}

/** What somebody set; the rest is the default of the server. */
export type SetLimits = Partial<BudgetLimits>

/** What is promised, to an agent, a tenant or on a node. */
export interface Held {
  readonly sandboxes: number
  readonly memoryBytes: number
  readonly diskBytes: number
  readonly cpuMillis: number
}

export type StoredReservation = Readonly<ReservationTable>

/** A sum comes as text from one dialect, and as null of nothing from both. */
const amount = z.coerce.number().pipe(z.int())
const limit = z.int().nullable()
const storedBudget = z.object({
  sandboxes: limit,
  memoryBytes: limit,
  diskBytes: limit,
  cpuMillis: limit,
  computeSecondsPerDay: limit,
  microDollarsPerDay: limit,
  modelCallsPerDay: limit,
  modelTokensPerDay: limit,
})

export async function findSetLimits(db: Queries, of: BudgetScope): Promise<SetLimits> {
  const row = await db
    .selectFrom('budgets')
    .selectAll()
    .where('tenant', '=', of.tenant)
    .where('agent', '=', of.agent ?? '')
    .executeTakeFirst()
  return row ? fromRow(storedBudget.parse(row)) : {}
}

export async function putSetLimits(
  db: Queries,
  of: BudgetScope,
  to: { readonly limits: SetLimits; readonly at: number },
): Promise<void> {
  const columns = toColumns(to.limits)
  await db
    .insertInto('budgets')
    .values({ tenant: of.tenant, agent: of.agent ?? '', ...columns, updatedAt: to.at })
    .onConflict((conflict) => conflict.columns(['tenant', 'agent']).doUpdateSet({ ...columns, updatedAt: to.at }))
    .execute()
}

/** What sandboxes hold, all but `except`: a try whose answer was lost does not stand in its own way. */
export async function sumHeld(
  db: Queries,
  of: { readonly tenant: string; readonly agent: string | null } | { readonly node: string },
  except: string | null = null,
): Promise<Held> {
  let query = db
    .selectFrom('reservations')
    .select(({ fn }) => [
      fn.countAll().as('sandboxes'),
      fn.sum('memoryBytes').as('memoryBytes'),
      fn.sum('diskBytes').as('diskBytes'),
      fn.sum('cpuMillis').as('cpuMillis'),
    ])
  if ('node' in of) query = query.where('node', '=', of.node)
  else query = query.where('tenant', '=', of.tenant)
  if ('agent' in of && of.agent !== null) query = query.where('agent', '=', of.agent)
  if (except !== null) query = query.where('sandbox', '<>', except)
  const row = await query.executeTakeFirstOrThrow()
  return z.object({ sandboxes: amount, memoryBytes: amount, diskBytes: amount, cpuMillis: amount }).parse(row)
}

/** Ids are new, so one that is there came from us, by a try whose answer was lost. */
export async function insertReservation(db: Queries, reservation: StoredReservation): Promise<void> {
  await db
    .insertInto('reservations')
    .values(reservation)
    .onConflict((conflict) => conflict.column('sandbox').doNothing())
    .execute()
}

/** Of a sandbox that holds one: how much that is. */
export async function updateReservation(
  db: Queries,
  sandbox: string,
  held: Pick<StoredReservation, 'memoryBytes' | 'diskBytes' | 'cpuMillis'>,
): Promise<void> {
  await db.updateTable('reservations').set(held).where('sandbox', '=', sandbox).execute()
}

/** Of a sandbox that holds one; undefined when it holds none any more. */
export async function findReservation(db: Queries, sandbox: string): Promise<string | undefined> {
  const row = await db.selectFrom('reservations').select('id').where('sandbox', '=', sandbox).executeTakeFirst()
  return row?.id
}

export async function releaseReservation(db: Queries, sandbox: string): Promise<void> {
  await db.deleteFrom('reservations').where('sandbox', '=', sandbox).execute()
}

function fromRow(row: z.infer<typeof storedBudget>): SetLimits {
  const { sandboxes, memoryBytes, diskBytes, cpuMillis, computeSecondsPerDay, microDollarsPerDay } = row
  const { modelCallsPerDay, modelTokensPerDay } = row
  return {
    ...(sandboxes === null ? {} : { sandboxes }),
    ...(memoryBytes === null ? {} : { memoryBytes }),
    ...(diskBytes === null ? {} : { diskBytes }),
    ...(cpuMillis === null ? {} : { cpus: cpuMillis / 1000 }),
    ...(computeSecondsPerDay === null ? {} : { computeSecondsPerDay }),
    ...(microDollarsPerDay === null ? {} : { dollarsPerDay: microDollarsPerDay / 1e6 }),
    ...(modelCallsPerDay === null ? {} : { modelCallsPerDay }),
    ...(modelTokensPerDay === null ? {} : { modelTokensPerDay }),
  }
}

function toColumns(limits: SetLimits): Omit<BudgetTable, 'tenant' | 'agent' | 'updatedAt'> {
  const { sandboxes, memoryBytes, diskBytes, cpus, computeSecondsPerDay, dollarsPerDay } = limits
  return {
    sandboxes: sandboxes ?? null,
    memoryBytes: memoryBytes ?? null,
    diskBytes: diskBytes ?? null,
    cpuMillis: cpus === undefined ? null : Math.round(cpus * 1000),
    computeSecondsPerDay: computeSecondsPerDay ?? null,
    microDollarsPerDay: dollarsPerDay === undefined ? null : Math.round(dollarsPerDay * 1e6),
    modelCallsPerDay: limits.modelCallsPerDay ?? null,
    modelTokensPerDay: limits.modelTokensPerDay ?? null,
  }
}
