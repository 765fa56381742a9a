import { AirlockError, BOUNDS, type BudgetLimits, type Limits } from '@airlock/contract'
import {
  type BudgetScope,
  findSetLimits,
  insertReservation,
  type StoredReservation,
  sumHeld,
  updateReservation,
} from '../store/budgets.ts'
import type { Queries } from '../store/engine/store.ts'
import { sumSpent } from '../store/usage.ts'
import { exhausted } from './exhausted.ts'

const RETRY_AFTER_S = 5

/** Who wants a sandbox, how large, and where. */
export interface Asking {
  readonly reservation: string
  readonly sandbox: string
  readonly tenant: string
  readonly agent: string
  readonly node: string
  readonly limits: Pick<Limits, 'memoryBytes' | 'diskBytes' | 'cpus'>
  readonly now: number
}

/** What the node has for sandboxes, with what it promises beyond that. */
export interface NodeCapacity {
  readonly sandboxes: number
  readonly memoryBytes: number
  /** None is left while the host has only its reserve: `isDiskFull`. */
  readonly diskBytes: number
  readonly isDiskFull: boolean
  readonly cpus: number
}

/**
 * Sets aside what a sandbox may use, in the budgets of its agent and its tenant and on its node, or refuses. Precondition: in the
 * transaction that takes the place; transactions run one after another, so two requests cannot share what is left.
 * Held until the sandbox ends.
 */
export async function reserve(
  db: Queries,
  asking: Asking,
  rules: { readonly defaults: BudgetLimits; readonly capacity: NodeCapacity },
): Promise<void> {
  const { tenant, agent } = asking
  await assertAllowed(db, asking, { scope: { tenant, agent }, defaults: rules.defaults })
  await assertAllowed(db, asking, { scope: { tenant, agent: null }, defaults: rules.defaults })
  await assertRoom(db, asking, rules.capacity)
  await insertReservation(db, reservationOf(asking))
}

/**
 * The same for a sandbox that lives and is to have other limits. What rises must be there to be had; what is given back is held
 * until the kernel has taken it.
 */
export async function reserveChange(
  db: Queries,
  asking: Omit<Asking, 'reservation'>,
  change: { readonly from: Asking['limits']; readonly defaults: BudgetLimits; readonly capacity: NodeCapacity },
): Promise<void> {
  const { tenant, agent, limits, sandbox } = asking
  const { from, defaults, capacity } = change
  const more = {
    memoryBytes: limits.memoryBytes > from.memoryBytes ? limits.memoryBytes : 0,
    diskBytes: limits.diskBytes > from.diskBytes ? limits.diskBytes : 0,
    cpus: limits.cpus > from.cpus ? limits.cpus : 0,
  }
  const risen = { ...asking, limits: more }
  if (more.memoryBytes > 0 || more.diskBytes > 0 || more.cpus > 0) {
    await assertAllowed(db, risen, { scope: { tenant, agent }, defaults })
    await assertAllowed(db, risen, { scope: { tenant, agent: null }, defaults })
    await assertRoom(db, risen, capacity)
  }
  await holdFor(db, sandbox, {
    memoryBytes: Math.max(limits.memoryBytes, from.memoryBytes),
    diskBytes: Math.max(limits.diskBytes, from.diskBytes),
    cpus: Math.max(limits.cpus, from.cpus),
  })
}

/** What a sandbox holds from now on. */
export async function holdFor(db: Queries, sandbox: string, limits: Asking['limits']): Promise<void> {
  await updateReservation(db, sandbox, heldOf(limits))
}

/** The limits that hold for an agent, or with null for its tenant. */
export async function limitsOf(db: Queries, of: BudgetScope, defaults: BudgetLimits): Promise<BudgetLimits> {
  return { ...defaultsOf(of, defaults), ...(await findSetLimits(db, of)) }
}

/** A day of budgets, in UTC: 2026-01-31. */
export function dayOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10)
}

function defaultsOf(of: BudgetScope, agent: BudgetLimits): BudgetLimits {
  if (of.agent !== null) return agent
  return {
    sandboxes: agent.sandboxes * BOUNDS.tenantShare,
    memoryBytes: agent.memoryBytes * BOUNDS.tenantShare,
    diskBytes: agent.diskBytes * BOUNDS.tenantShare,
    cpus: agent.cpus * BOUNDS.tenantShare,
    computeSecondsPerDay: agent.computeSecondsPerDay * BOUNDS.tenantShare,
    dollarsPerDay: agent.dollarsPerDay * BOUNDS.tenantShare,
    modelCallsPerDay: agent.modelCallsPerDay * BOUNDS.tenantShare,
    modelTokensPerDay: agent.modelTokensPerDay * BOUNDS.tenantShare,
  }
}

async function assertAllowed(
  db: Queries,
  asking: Omit<Asking, 'reservation'>,
  of: { readonly scope: BudgetScope; readonly defaults: BudgetLimits },
): Promise<void> {
  const { scope } = of
  const limits = await limitsOf(db, scope, of.defaults)
  const held = await sumHeld(db, scope, asking.sandbox)
  const { memoryBytes, diskBytes, cpus } = asking.limits
  const wanted = [
    { name: 'sandboxes', used: held.sandboxes, more: 1, limit: limits.sandboxes, per: 1 },
    { name: 'memoryBytes', used: held.memoryBytes, more: memoryBytes, limit: limits.memoryBytes, per: 1 },
    { name: 'diskBytes', used: held.diskBytes, more: diskBytes, limit: limits.diskBytes, per: 1 },
    { name: 'cpus', used: held.cpuMillis, more: millis(cpus), limit: millis(limits.cpus), per: 1000 },
  ] as const
  for (const { name, used, more, limit, per } of wanted)
    if (isOver(used, more, limit))
      throw exhausted(scope, name, { used: used / per, more: more / per, limit: limit / per })
  const spent = await sumSpent(db, { ...scope, day: dayOf(asking.now) })
  if (spent.computeMs >= limits.computeSecondsPerDay * 1000)
    throw exhausted(scope, 'computeSecondsPerDay', {
      used: spent.computeMs / 1000,
      more: 0,
      limit: limits.computeSecondsPerDay,
    })
  // A sandbox by itself spends none, so a budget without a dollar is no obstacle.
  if (spent.microDollars > 0 && spent.microDollars >= Math.round(limits.dollarsPerDay * 1e6))
    throw exhausted(scope, 'dollarsPerDay', { used: spent.microDollars / 1e6, more: 0, limit: limits.dollarsPerDay })
}

/** Fails closed: what the node cannot keep is not promised. */
async function assertRoom(db: Queries, asking: Omit<Asking, 'reservation'>, capacity: NodeCapacity): Promise<void> {
  const held = await sumHeld(db, { node: asking.node }, asking.sandbox)
  const { memoryBytes, diskBytes, cpus } = asking.limits
  if (diskBytes > 0 && capacity.isDiskFull) throw new AirlockError('host_disk_full')
  const wanted = [
    { of: 'sandboxes', used: held.sandboxes, more: 1, limit: capacity.sandboxes },
    { of: 'memory', used: held.memoryBytes, more: memoryBytes, limit: capacity.memoryBytes },
    { of: 'disk', used: held.diskBytes, more: diskBytes, limit: capacity.diskBytes },
    { of: 'processors', used: held.cpuMillis, more: millis(cpus), limit: millis(capacity.cpus) },
  ]
  const full = wanted.find(({ used, more, limit }) => isOver(used, more, limit))
  if (full === undefined) return
  if (full.more > full.limit)
    throw new AirlockError('capacity_exhausted', `The node has less ${full.of} than that in all.`, {
      hint: 'Ask for less: waiting does not help.',
    })
  throw new AirlockError('capacity_exhausted', `The node has promised all of its ${full.of}.`, {
    retryAfterS: RETRY_AFTER_S,
  })
}

/** Who asks for no more is not refused for what others hold. */
function isOver(held: number, more: number, limit: number): boolean {
  return more > 0 && held + more > limit
}

function reservationOf(asking: Asking): StoredReservation {
  const { reservation: id, sandbox, tenant, agent, node, limits } = asking
  return { sandbox, id, tenant, agent, node, ...heldOf(limits) }
}

function heldOf({ memoryBytes, diskBytes, cpus }: Asking['limits']) {
  return { memoryBytes, diskBytes, cpuMillis: millis(cpus) }
}

/** Parts of a processor are counted in whole thousandths, so that sums are exact. */
function millis(cpus: number): number {
  return Math.round(cpus * 1000)
}
