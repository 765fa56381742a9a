import type { Caller } from '../app/caller.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'

/** A sandbox that asks through its door. */
export function callerOf({ id, tenant, agent }: StoredSandbox, requestId: string): Caller {
  const principal = { actor: `sandbox:${id}`, tenant, role: 'developer', agents: [agent], platform: false } as const
  return { principal, requestId }
}
