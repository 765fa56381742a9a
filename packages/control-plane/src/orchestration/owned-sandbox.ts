import { AirlockError, isAirlockError, type Principal } from '@airlock/contract'
import { findSandbox, type StoredSandbox } from '../store/sandboxes.ts'
import type { Store } from '../store/store.ts'
import type { Caller } from './core.ts'
import { isEnded } from './lifecycle.ts'

/** Whether a principal may act for an agent of its own tenant. */
export function mayUseAgent(principal: Principal, agent: string): boolean {
  return principal.agents === null || principal.agents.includes(agent)
}

/** The tenant wall (G10): the only way from a caller to a sandbox. Not yours is not found. */
export async function ownedSandbox(store: Store, caller: Caller, id: string): Promise<StoredSandbox> {
  const row = await store.query((db) => findSandbox(db, id))
  const { principal } = caller
  if (!row || row.tenant !== principal.tenant || !mayUseAgent(principal, row.agent))
    throw new AirlockError('sandbox_not_found')
  return row
}

/** The same, for what has an effect inside: it must be active. */
export async function usableSandbox(store: Store, caller: Caller, id: string): Promise<StoredSandbox> {
  const row = await ownedSandbox(store, caller, id)
  if (isEnded(row.state)) throw new AirlockError('sandbox_ended')
  if (row.state !== 'active') throw new AirlockError('sandbox_not_active')
  return row
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
