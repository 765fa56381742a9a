import {
  type BudgetLimits,
  type CloseModelCall,
  costOf,
  type ModelLimits,
  modelPrices,
  type ModelUsage,
  type NewRecord,
} from '@airlock/contract'
import { dayOf, limitsOf } from '../spend/reserve.ts'
import { exhausted } from '../spend/exhausted.ts'
import type { BudgetScope } from '../store/budgets.ts'
import type { Queries } from '../store/engine/store.ts'
import {
  deleteModelCall,
  findModelCall,
  insertModelCall,
  insertModelCallEnd,
  type StoredModelCall,
  sumHeldByCalls,
} from '../store/model-calls.ts'
import { insertUsageFact, sumSpent, sumSpentBySandbox } from '../store/usage.ts'
import { type PricedCall, sandboxExhausted, tooDear, tooManyAtOnce } from './exhausted-calls.ts'

/** A call whose end is in the ledger now, with what it cost. */
export interface ClosedCall extends StoredModelCall {
  /** As it was billed. */
  readonly usage: CloseModelCall['usage']
  readonly microDollars: number
}

/** End of a call, as reported. */
interface ReportedEnd {
  /** The last record of the call, which is owed until the evidence has it. */
  readonly recordOf: (call: ClosedCall) => NewRecord
  readonly usage: CloseModelCall['usage']
  readonly at: number
  /** Context window of a model in tokens; 0 when the server has it no longer. */
  readonly contextOf: (model: string) => number
}

/** Limits that a call is opened under: defaults of the budgets, and the caps of its sandbox. */
export interface CallRules {
  readonly defaults: BudgetLimits
  readonly sandbox: ModelLimits
  /** Route and bound on output of the call, for the sentence that refuses it. */
  readonly output: Pick<PricedCall, 'route' | 'maxOutputTokens'>
}

/**
 * Reserves the ceiling of a call in the caps of its sandbox and in the budgets of its agent and tenant, or refuses. Precondition:
 * in a transaction, so that two calls cannot share what is left.
 */
export async function openCall(
  db: Queries,
  call: Omit<StoredModelCall, 'day'>,
  rules: CallRules,
): Promise<StoredModelCall> {
  const { tenant, agent } = call
  const opened = { ...call, day: dayOf(call.openedAt) }
  const priced = { ...opened, ...rules.output, outputPrice: modelPrices.parse(JSON.parse(opened.price)).output }
  await assertWithinSandbox(db, priced, rules.sandbox)
  await assertWithinBudget(db, priced, { scope: { tenant, agent }, defaults: rules.defaults })
  await assertWithinBudget(db, priced, { scope: { tenant, agent: null }, defaults: rules.defaults })
  await insertModelCall(db, opened)
  return opened
}

/**
 * Turns a call that is under way into one fact of the ledger. Undefined when it is not under way: each call becomes exactly one
 * fact, however often its end is reported. Precondition: in a transaction.
 */
export async function closeCall(db: Queries, id: string, end: ReportedEnd): Promise<ClosedCall | undefined> {
  const call = await findModelCall(db, id)
  if (!call) return undefined
  await deleteModelCall(db, id)
  const { tenant, agent, sandbox, day, model, upstream } = call
  const of = { source: 'model', key: id, tenant, agent, sandbox, day, model, upstream, at: end.at }
  const usage = isPlausible(end.usage, call, end.contextOf(model)) ? end.usage : 'unreported'
  const bill = billOf(call, usage)
  await insertUsageFact(db, { ...of, wallMs: 0, cpuMs: 0, computeMs: 0, ...bill })
  const closed = { ...call, usage, microDollars: bill.microDollars }
  await insertModelCallEnd(db, { id, node: call.node, record: end.recordOf(closed) })
  return closed
}

/**
 * An upstream may count more than the ceiling, which is an estimate. It cannot count more than a full context on top: such a
 * report is an error or an attack on the budget, and the call is charged as unreported.
 */
function isPlausible(usage: CloseModelCall['usage'], { ceilingTokens }: StoredModelCall, context: number): boolean {
  return typeof usage === 'string' || tokensOf(usage) <= ceilingTokens + context
}

function tokensOf({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }: ModelUsage): number {
  return inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens
}

/** Unknown is never zero: a call without usage is charged its ceiling. */
function billOf({ ceilingMicroDollars, ceilingTokens, price }: StoredModelCall, usage: CloseModelCall['usage']) {
  if (usage === 'unsent') return { ...tokens(0), microDollars: 0, estimated: 0, calls: 0, chargedTokens: 0 }
  if (usage === 'unreported')
    return { ...tokens(null), microDollars: ceilingMicroDollars, estimated: 1, calls: 1, chargedTokens: ceilingTokens }
  const microDollars = costOf(usage, modelPrices.parse(JSON.parse(price)))
  return { ...usage, microDollars, estimated: 0, calls: 1, chargedTokens: tokensOf(usage) }
}

function tokens(count: 0 | null) {
  return { inputTokens: count, outputTokens: count, cacheReadTokens: count, cacheWriteTokens: count }
}

async function assertWithinBudget(
  db: Queries,
  call: StoredModelCall & PricedCall,
  of: { readonly scope: BudgetScope; readonly defaults: BudgetLimits },
): Promise<void> {
  const { scope } = of
  const limits = await limitsOf(db, scope, of.defaults)
  const at = { ...scope, day: call.day }
  const spent = await sumSpent(db, at)
  const held = await sumHeldByCalls(db, at)
  const calls = spent.calls + held.calls
  if (calls >= limits.modelCallsPerDay)
    throw exhausted(scope, 'modelCallsPerDay', { used: calls, more: 1, limit: limits.modelCallsPerDay })
  const used = spent.tokens + held.tokens
  if (used + call.ceilingTokens > limits.modelTokensPerDay)
    throw exhausted(scope, 'modelTokensPerDay', { used, more: call.ceilingTokens, limit: limits.modelTokensPerDay })
  const limit = Math.round(limits.dollarsPerDay * 1e6)
  if (isOver(call.ceilingMicroDollars, limit - spent.microDollars - held.microDollars))
    throw tooDear(scope, { spent: spent.microDollars, held: held.microDollars, limit }, call)
}

/** Caps of a sandbox hold over its whole life. */
async function assertWithinSandbox(
  db: Queries,
  call: StoredModelCall & PricedCall,
  limits: ModelLimits,
): Promise<void> {
  const { sandbox } = call
  const held = await sumHeldByCalls(db, { sandbox })
  if (held.calls >= limits.concurrentCalls) throw tooManyAtOnce(limits.concurrentCalls)
  if (limits.calls === null && limits.tokens === null && limits.dollars === null) return
  const spent = await sumSpentBySandbox(db, sandbox)
  const calls = spent.calls + held.calls
  if (limits.calls !== null && calls >= limits.calls)
    throw sandboxExhausted('calls', { used: calls, more: 1, limit: limits.calls }, call)
  const used = spent.tokens + held.tokens
  if (limits.tokens !== null && used + call.ceilingTokens > limits.tokens)
    throw sandboxExhausted('tokens', { used, more: call.ceilingTokens, limit: limits.tokens }, call)
  if (limits.dollars === null) return
  const limit = Math.round(limits.dollars * 1e6)
  const money = spent.microDollars + held.microDollars
  if (isOver(call.ceilingMicroDollars, limit - money))
    throw sandboxExhausted('dollars', { used: money, more: call.ceilingMicroDollars, limit }, call)
}

/** A call that cannot cost anything passes when nothing is left. */
function isOver(ceiling: number, left: number): boolean {
  return ceiling > Math.max(0, left)
}
