import type { AuditSink } from '@airlock/audit'
import type { BudgetLimits, Failpoint } from '@airlock/contract'
import type { Clock, KeyedLock, Log } from '@airlock/std'
import type { PermitDesk } from '../admission/permits.ts'
import type { LatestTimes } from '../store/latest-times.ts'
import type { Store } from '../store/store.ts'
import type { DataPlaneClient } from './data-plane-client.ts'
import type { Heartbeats } from './heartbeats.ts'
import type { NodeIdentity } from './node-identity.ts'
import type { Readiness } from './readiness.ts'

/** What every step of the lifecycle works with; `compose.ts` makes it once. */
export interface Context {
  readonly store: Store
  /** Which of the nodes that share the store we are: only its sandboxes are ours to judge and to use. */
  readonly node: NodeIdentity
  readonly dataPlane: DataPlaneClient
  readonly audit: AuditSink
  readonly permits: PermitDesk
  readonly readiness: Readiness
  /** By sandbox id: creating and ending one sandbox never overlap. */
  readonly turns: KeyedLock
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
  readonly heartbeats: Heartbeats
  /** When each API key was last used. */
  readonly keyUses: LatestTimes
  /** An agent of which nothing was heard for so long is stale. */
  readonly agentStaleMs: number
  /** Sandboxes at once on the node. */
  readonly capacity: number
  /** How many times what it has the node promises. */
  readonly oversubscription: { readonly memory: number; readonly cpus: number }
  /** What an agent may have whose budget says nothing else. */
  readonly budgetDefaults: BudgetLimits
}
