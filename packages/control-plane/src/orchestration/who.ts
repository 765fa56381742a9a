import type { AgentEnds } from './agent-ends.ts'
import { Agents } from './agents.ts'
import { Budgets } from './budgets.ts'
import type { Context } from './context.ts'
import type { GrantEnds } from './grant-ends.ts'
import { Grants } from './grants.ts'
import { Keys } from './keys.ts'
import { Tenants } from './tenants.ts'
import { Usage } from './usage.ts'

/** Who there is: the part of the core that is about agents, their grants and budgets, keys, tenants, and what was used. */
export interface Who {
  readonly agents: Agents
  readonly grants: Grants
  readonly budgets: Budgets
  readonly keys: Keys
  readonly tenants: Tenants
  readonly usage: Usage
}

type World = Pick<
  Context,
  'store' | 'audit' | 'clock' | 'readiness' | 'heartbeats' | 'keyUses' | 'node' | 'dataPlane' | 'budgetDefaults'
>

interface Ends {
  readonly agentEnds: Pick<AgentEnds, 'endSandboxesOf'>
  readonly grantEnds: Pick<GrantEnds, 'endHoldersOf'>
}

export function createWho(world: World, ends: Ends): Who {
  return {
    agents: new Agents(world, ends.agentEnds),
    grants: new Grants(world, ends.grantEnds),
    budgets: new Budgets(world),
    keys: new Keys(world),
    tenants: new Tenants(world),
    usage: new Usage(world),
  }
}
