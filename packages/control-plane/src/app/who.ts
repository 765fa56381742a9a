import type { AgentEnds } from '../agents/agent-ends.ts'
import { Agents } from '../agents/agents.ts'
import type { Asks } from './asks.ts'
import { Budgets } from '../spend/budgets.ts'
import type { Context } from './context.ts'
import type { GrantEnds } from '../agents/grant-ends.ts'
import { Grants } from '../agents/grants.ts'
import { Keys } from '../tenants/keys.ts'
import type { Kills } from '../kills/killswitch.ts'
import { Policies } from '../policies/policies.ts'
import { Tenants } from '../tenants/tenants.ts'
import { Usage } from '../spend/usage.ts'

/** Who there is: the part of the core that is about agents, their grants and budgets, keys, tenants, what was used, and which policies hold. */
export interface Who {
  readonly agents: Agents
  readonly grants: Grants
  readonly budgets: Budgets
  readonly keys: Keys
  readonly tenants: Tenants
  readonly usage: Usage
  readonly policies: Policies
  readonly killswitch: Kills
  readonly asks: Asks
}

type World = Pick<
  Context,
  | 'store'
  | 'audit'
  | 'clock'
  | 'heartbeats'
  | 'keyUses'
  | 'guardKeys'
  | 'node'
  | 'dataPlane'
  | 'budgetDefaults'
  | 'guardian'
  | 'policies'
  | 'approvesVersions'
>

interface Ends {
  readonly agentEnds: Pick<AgentEnds, 'endSandboxesOf'>
  readonly grantEnds: Pick<GrantEnds, 'endHoldersOf'>
  readonly killswitch: Kills
  readonly asks: Asks
}

export function createWho(world: World, ends: Ends): Who {
  return {
    agents: new Agents(world, ends.agentEnds),
    grants: new Grants(world, ends.grantEnds),
    budgets: new Budgets(world),
    keys: new Keys(world),
    tenants: new Tenants(world),
    usage: new Usage(world),
    policies: new Policies(world),
    killswitch: ends.killswitch,
    asks: ends.asks,
  }
}
