import { AirlockError, type BudgetLimits, type CloseModelCall, costOf, modelPrices } from '@airlock/contract'
import { dayOf, limitsOf } from '../spend/reserve.ts'
import type { BudgetScope } from '../store/budgets.ts'
import type { Queries } from '../store/engine/store.ts'
import {
  deleteModelCall,
  findModelCall,
  insertModelCall,
  type StoredModelCall,
  sumCeilings,
} from '../store/model-calls.ts'
import { insertUsageFact, sumSpent } from '../store/usage.ts'

/** A call whose end is in the ledger now, with what it cost. */
export interface ClosedCall extends StoredModelCall {
  readonly microDollars: number
}

/**
 * Sets the ceiling of a call aside, in the budgets of its agent and of its tenant, or refuses. Precondition: in a transaction,
 * so that two calls cannot share what is left.
 */
export async function openCall(
  db: Queries,
  call: Omit<StoredModelCall, 'day'>,
  defaults: BudgetLimits,
): Promise<StoredModelCall> {
  const { tenant, agent } = call
  const opened = { ...call, day: dayOf(call.openedAt) }
  await assertAffordable(db, opened, { scope: { tenant, agent }, defaults })
  await assertAffordable(db, opened, { scope: { tenant, agent: null }, defaults })
  await insertModelCall(db, opened)
  return opened
}

/**
 * Turns a call that is under way into one fact of the ledger. Undefined when it is not under way: each call becomes exactly one
 * fact, however often its end is reported. Precondition: in a transaction.
 */
export async function closeCall(
  db: Queries,
  id: string,
  end: { readonly usage: CloseModelCall['usage']; readonly at: number },
): Promise<ClosedCall | undefined> {
  const call = await findModelCall(db, id)
  if (!call) return undefined
  await deleteModelCall(db, id)
  const { tenant, agent, sandbox, day, model, upstream } = call
  const of = { source: 'model', key: id, tenant, agent, sandbox, day, model, upstream, at: end.at }
  const bill = billOf(call, end.usage)
  await insertUsageFact(db, { ...of, wallMs: 0, cpuMs: 0, computeMs: 0, ...bill })
  return { ...call, microDollars: bill.microDollars }
}

/** Unknown is never zero: a call without usage is charged its ceiling. */
function billOf({ ceilingMicroDollars, price }: StoredModelCall, usage: CloseModelCall['usage']) {
  if (usage === 'unsent') return { ...tokens(0), microDollars: 0, estimated: 0 }
  if (usage === 'unreported') return { ...tokens(null), microDollars: ceilingMicroDollars, estimated: 1 }
  return { ...usage, microDollars: costOf(usage, modelPrices.parse(JSON.parse(price))), estimated: 0 }
}

function tokens(count: 0 | null) {
  return { inputTokens: count, outputTokens: count, cacheReadTokens: count, cacheWriteTokens: count }
}

async function assertAffordable(
  db: Queries,
  call: StoredModelCall,
  of: { readonly scope: BudgetScope; readonly defaults: BudgetLimits },
): Promise<void> {
  const { scope } = of
  const { dollarsPerDay } = await limitsOf(db, scope, of.defaults)
  const at = { ...scope, day: call.day }
  const spent = (await sumSpent(db, at)).microDollars
  const held = await sumCeilings(db, at)
  const limit = Math.round(dollarsPerDay * 1e6)
  const left = Math.max(0, limit - spent - held)
  if (call.ceilingMicroDollars <= left) return
  const target = scope.agent ?? `${scope.tenant} --tenant`
  const more = Math.ceil((spent + held + call.ceilingMicroDollars) / 1e6)
  throw new AirlockError(
    'budget_exhausted',
    `The call may cost ${dollars(call.ceilingMicroDollars)}, and ${nameOf(scope)} has ${dollars(left)} left today: ` +
      `${dollars(spent)} of ${dollars(limit)} are spent, ${dollars(held)} are reserved for calls under way.`,
    { hint: `Ask for fewer tokens, or raise it with the admin key: airlock budget set ${target} --dollars ${more}` },
  )
}

function nameOf({ tenant, agent }: BudgetScope): string {
  return agent === null ? `the tenant ${tenant}` : `the agent ${agent}`
}

/** Rounded up to the sixth digit, without zeros at the end: $0.0125. */
function dollars(microDollars: number): string {
  return `$${Number((microDollars / 1e6).toFixed(6))}`
}
