import type { AgentEnds } from '../agents/agent-ends.ts'
import { Agents } from '../agents/agents.ts'
import type { GrantEnds } from '../agents/grant-ends.ts'
import { Grants } from '../agents/grants.ts'
import { Policies } from '../policies/policies.ts'
import { Budgets } from '../spend/budgets.ts'
import { Usage } from '../spend/usage.ts'
import { Keys } from '../tenants/keys.ts'
import { Tenants } from '../tenants/tenants.ts'
import type { Context } from './context.ts'

/** Who there is, what each may have, and which policies hold: what needs no sandbox. */
export interface Registry {
  readonly agents: Agents
  readonly grants: Grants
  readonly budgets: Budgets
  readonly keys: Keys
  readonly tenants: Tenants
  readonly usage: Usage
  readonly policies: Policies
}

export type RegistryContext = Pick<
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
  | 'ephemeral'
  | 'approvesVersions'
>

/** `ends`: what ends with a change. */
export function createRegistry(
  context: RegistryContext,
  ends: {
    readonly agentEnds: Pick<AgentEnds, 'endSandboxesOf'>
    readonly grantEnds: Pick<GrantEnds, 'endHoldersOf'>
  },
): Registry {
  return {
    agents: new Agents(context, ends.agentEnds),
    grants: new Grants(context, ends.grantEnds),
    budgets: new Budgets(context),
    keys: new Keys(context),
    tenants: new Tenants(context),
    usage: new Usage(context),
    policies: new Policies(context),
  }
}
