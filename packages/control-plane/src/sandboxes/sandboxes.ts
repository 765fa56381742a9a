import { type Sandbox, type SandboxState, SANDBOX_STATES } from '@airlock/contract'
import { countByState, listSandboxes as query, LIVING_STATES } from '../store/sandboxes.ts'
import type { Activity } from './activity.ts'
import type { Context } from '../app/context.ts'
import type { Caller, ListSandboxes, Page } from '../app/core.ts'
import { toSandbox } from './nouns.ts'
import { mayUseAgent, ownedSandbox } from './owned-sandbox.ts'

type Reading = Pick<Context, 'store'> & { readonly activity: Activity }

export async function getSandbox(of: Reading, caller: Caller, id: string): Promise<Sandbox> {
  return toSandbox(of.activity.current(await ownedSandbox(of.store, caller, id)))
}

/** Newest first, of the agents that the caller may use. */
export async function listSandboxes(of: Reading, caller: Caller, asked: ListSandboxes): Promise<Page<Sandbox>> {
  const { principal } = caller
  if (asked.agent !== undefined && !mayUseAgent(principal, asked.agent)) return { items: [], nextCursor: null }
  const rows = await of.store.query((db) =>
    query(db, {
      tenant: principal.tenant,
      agents: asked.agent === undefined ? principal.agents : [asked.agent],
      states: statesOf(asked.state),
      name: asked.name,
      labels: asked.labels,
      before: asked.cursor,
      limit: asked.limit + 1,
    }),
  )
  return toPage(rows, asked.limit, (row) => toSandbox(of.activity.current(row)))
}

/** One more row than asked for says whether there is a next page. */
export function toPage<R extends { readonly id: string }, T>(
  rows: readonly R[],
  limit: number,
  show: (row: R) => T,
): Page<T> {
  const shown = rows.slice(0, limit)
  return { items: shown.map(show), nextCursor: rows.length > limit ? (shown.at(-1)?.id ?? null) : null }
}

/** Of this node: whoever adds up all nodes counts each sandbox once. */
export async function countSandboxes(
  of: Pick<Context, 'store' | 'node'>,
): Promise<Readonly<Record<SandboxState, number>>> {
  const found = await of.store.query((db) => countByState(db, of.node.id))
  const count = (state: SandboxState) => found.get(state) ?? 0
  return {
    creating: count('creating'),
    active: count('active'),
    paused: count('paused'),
    stopping: count('stopping'),
    stopped: count('stopped'),
    error: count('error'),
  }
}

function statesOf(asked: ListSandboxes['state']): readonly SandboxState[] {
  if (asked === 'all') return SANDBOX_STATES
  return asked === undefined ? LIVING_STATES : [asked]
}
