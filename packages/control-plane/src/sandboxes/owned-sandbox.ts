import { AirlockError, isAirlockError, type Principal } from '@airlock/contract'
import { findNode } from '../store/nodes.ts'
import { findSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import type { Store } from '../store/engine/store.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { isEnded } from './lifecycle.ts'
import { type ResumeContext, resumeSandbox } from './resume.ts'

/** Whether a principal may act for an agent of its own tenant. */
export function mayUseAgent(principal: Principal, agent: string): boolean {
  return principal.agents === null || principal.agents.includes(agent)
}

/** The tenant wall (G10): the one check for everything that belongs to an agent of a tenant. */
export function isOwned(principal: Principal, row: { readonly tenant: string; readonly agent: string }): boolean {
  return row.tenant === principal.tenant && mayUseAgent(principal, row.agent)
}

/** The only way from a caller to a sandbox. Not yours is not found. */
export async function ownedSandbox(store: Store, caller: Caller, id: string): Promise<StoredSandbox> {
  const row = await store.query((db) => findSandbox(db, id))
  if (!row || !isOwned(caller.principal, row)) throw new AirlockError('sandbox_not_found')
  return row
}

type Here = Pick<Context, 'store' | 'node'>

/** Rows are for every node to read; effects are for the node that has the sandbox. It is named, never guessed. */
export async function assertHere(here: Here, sandbox: StoredSandbox): Promise<void> {
  if (sandbox.node === here.node.id) return
  const owner = await here.store.query((db) => findNode(db, sandbox.node))
  const options = owner && owner.url !== '' ? { hint: `Ask ${owner.url}.` } : {}
  throw new AirlockError('wrong_node', `The sandbox lives on another node, ${sandbox.node}.`, options)
}

/** The same, for what it has said so far: it must be here, and may be paused. */
export async function readableSandbox(here: Here, caller: Caller, id: string): Promise<StoredSandbox> {
  const row = await ownedSandbox(here.store, caller, id)
  if (isEnded(row.state)) throw new AirlockError('sandbox_ended')
  await assertHere(here, row)
  if (row.state !== 'active' && row.state !== 'paused') throw new AirlockError('sandbox_not_active')
  return row
}

/** The same, for what has an effect inside: it must be here, and active. One that was paused for being idle wakes up. */
export async function usableSandbox(here: Here & ResumeContext, caller: Caller, id: string): Promise<StoredSandbox> {
  return awake(here, caller, await readableSandbox(here, caller, id))
}

/** Nothing happens in what is killed, and nothing but waking up in what is paused. */
export async function awake(here: ResumeContext, caller: Caller, row: StoredSandbox): Promise<StoredSandbox> {
  here.kills.assertAlive({ tenant: row.tenant, agent: row.agent, sandbox: row.id })
  if (row.state !== 'paused') return row
  if (row.pausedBy !== 'idle') throw new AirlockError('sandbox_paused')
  return resumeSandbox(here, caller, { sandbox: row, why: 'use' })
}

/** Asks the data plane. When it does not know a sandbox that we have, the sandbox ended just now, or broke down. */
export async function inSandbox<T>(store: Store, id: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!isAirlockError(error) || error.code !== 'sandbox_not_found') throw error
    const row = await store.query((db) => findSandbox(db, id))
    throw new AirlockError(row?.state === 'active' ? 'guest_lost' : 'sandbox_ended', undefined, { cause: error })
  }
}

/** Whether programs in it can write to the host: such effects outlive the sandbox and a failing host. */
export function writesOutside({ mounts }: Pick<StoredSandbox, 'mounts'>): boolean {
  return mounts.some(({ mode }) => mode === 'rw')
}
