import type { AuditSink } from '@airlock/audit'
import type { Failpoint } from '@airlock/contract'
import type { Clock, KeyedLock, Log } from '@airlock/std'
import type { PermitDesk } from '../admission/permits.ts'
import type { Store } from '../store/store.ts'
import type { DataPlaneClient } from './data-plane-client.ts'
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
  /** Sandboxes at once on the node. */
  readonly capacity: number
}
