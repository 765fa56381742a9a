import type { StagedSink } from '@airlock/audit'
import type { BudgetLimits, Failpoint } from '@airlock/contract'
import type { Clock, KeyedLock, Log } from '@airlock/std'
import type { Guardian } from '../policies/guardian.ts'
import type { KillList } from '../kills/kill-list.ts'
import type { ApprovalNews } from '../approvals/news.ts'
import type { EphemeralSandboxes } from '../sandboxes/ephemeral-sandboxes.ts'
import type { PermitDesk } from '../sandboxes/permits.ts'
import type { PolicyBook } from '../policies/policy-book.ts'
import type { SandboxTokenDesk } from '../doors/sandbox-tokens.ts'
import type { GuardKeys } from '../identity/guard-keys.ts'
import type { LatestTimes } from '../store/engine/latest-times.ts'
import type { ModelCatalog } from '../models/catalog.ts'
import type { SealKeyFile } from '../tools/seal-key-file.ts'
import type { FixedGraph } from '../runs/builtin-graphs.ts'
import type { ReservationDesk } from '../models/reservation-desk.ts'
import type { ArtifactLinkDesk } from '../artifacts/artifact-links.ts'
import type { Store } from '../store/engine/store.ts'
import type { DataPlane } from '../nodes/data-plane.ts'
import type { Doors } from '../nodes/doors.ts'
import type { DoorNews } from '../doors/door-news.ts'
import type { Heartbeats } from '../agents/heartbeats.ts'
import type { KillHook } from '../kills/kill-hooks.ts'
import type { KillSpill } from '../kills/kill-spill.ts'
import type { NodeIdentity } from '../nodes/node-identity.ts'
import type { Readiness } from '../nodes/readiness.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'

export interface ArtifactBounds {
  readonly maxBytes: number
  readonly quotaBytes: number
  readonly quotaCount: number
}

/** What every step of the lifecycle works with; `compose.ts` makes it once. */
export interface Context {
  readonly store: Store
  /** Which of the nodes that share the store we are: only its sandboxes are ours to judge and to use. */
  readonly node: NodeIdentity
  readonly dataPlane: DataPlane
  readonly audit: StagedSink
  readonly permits: PermitDesk
  readonly sandboxTokens: SandboxTokenDesk
  /** The models that sandboxes may ask for. */
  readonly models: ModelCatalog
  /** Agent programs that all tenants have. */
  readonly graphs: readonly FixedGraph[]
  readonly reservations: ReservationDesk
  /** To which key secrets are sealed at this node. */
  readonly sealKey: SealKeyFile
  readonly doors: Doors
  /** Tells the doors what no longer holds. */
  readonly doorNews: DoorNews
  /** Asked before every effect of a caller. */
  readonly guardian: Guardian
  /** What it reads its rules from. */
  readonly policies: PolicyBook
  /** What becomes of asks, as it happens here. */
  readonly approvalNews: ApprovalNews
  /** Tells who wants to be told. */
  readonly webhooks: Webhooks
  /** Webhooks may be at addresses that are not public. */
  readonly webhookPrivate: boolean
  readonly readiness: Readiness
  /** Sandboxes that were created for one run. */
  readonly ephemeral: EphemeralSandboxes
  /** The killswitches that are on. */
  readonly kills: KillList
  /** Where they are until the store has them. */
  readonly killSpill: KillSpill
  /** Told of every kill. */
  readonly killHooks: readonly KillHook[]
  /** By sandbox id: creating and ending one sandbox never overlap. */
  readonly turns: KeyedLock
  readonly clock: Clock
  /** The last sign of life of this node before it was started, by its clock. */
  readonly aliveBefore: number
  readonly log: Log
  readonly failpoint: Failpoint
  readonly heartbeats: Heartbeats
  /** When each API key was last used. */
  readonly keyUses: LatestTimes
  /** Whose keys are known while the store is away. */
  readonly guardKeys: GuardKeys
  /** An agent of which nothing was heard for so long is stale. */
  readonly agentStaleMs: number
  /** An agent whose version changes has to be approved again. */
  readonly approvesVersions: boolean
  /** Sandboxes at once on the node. */
  readonly capacity: number
  /** How many times what it has the node promises. */
  readonly oversubscription: { readonly memory: number; readonly disk: number; readonly cpus: number }
  /** What an agent may have whose budget says nothing else. */
  readonly budgetDefaults: BudgetLimits
  /** What one artifact, and all of one tenant, may have. */
  readonly artifactBounds: ArtifactBounds
  /** Signs URLs of artifacts. */
  readonly artifactLinks: ArtifactLinkDesk
}
