import { dayOf } from './reserve.ts'
import { listLiving, type StoredSandbox } from '../store/sandboxes.ts'
import type { Queries } from '../store/engine/store.ts'
import { COMPUTE, insertUsageFact, sumBilled } from '../store/usage.ts'
import type { Context } from '../app/context.ts'

/**
 * Writes down what a sandbox used since the last time. Counters only grow, so what the ledger has is taken off, and nothing is
 * counted twice, however often this is done. Where the kernel's count is lost, the sandbox is charged all that it could have
 * used: unknown is never zero. Precondition: in a transaction.
 */
export async function billSandbox(
  db: Queries,
  row: StoredSandbox,
  seen: { readonly at: number; readonly cpuMs: number | null },
): Promise<void> {
  const before = await sumBilled(db, row.id)
  const wallMs = Math.max(0, seen.at - row.createdAt - before.wallMs)
  const counted = seen.cpuMs === null ? null : Math.round(seen.cpuMs)
  const cpuMs = counted === null ? 0 : Math.max(0, counted - before.cpuMs)
  const computeMs = counted === null ? Math.ceil(wallMs * row.limits.cpus) : Math.max(0, counted - before.computeMs)
  if (wallMs === 0 && computeMs === 0) return
  const { tenant, agent, id: sandbox } = row
  const key = `${sandbox}/${before.facts + 1}`
  const of = { key, tenant, agent, sandbox, day: dayOf(seen.at) }
  await insertUsageFact(db, { ...COMPUTE, ...of, wallMs, cpuMs, computeMs, at: seen.at })
}

/** Bills the sandboxes of this node while they live, so that a day's budget is known before they end. */
export async function billLiving(context: Pick<Context, 'store' | 'node' | 'clock' | 'dataPlane'>): Promise<void> {
  const { store, node, clock, dataPlane } = context
  const rows = await store.query((db) => listLiving(db, node.id))
  const counted = new Map((await dataPlane.metrics()).samples.map(({ id, cpuMs }) => [id, cpuMs]))
  for (const row of rows) {
    const cpuMs = counted.get(row.id) ?? null
    // One that is not counted now may be on its way in or out: its end is billed.
    if (row.state === 'active' && cpuMs !== null)
      await store.transaction((db) => billSandbox(db, row, { at: clock.now(), cpuMs }))
  }
}
