import type { AuditSink } from '@airlock/audit'
import type { Failpoint } from '@airlock/contract'
import type { Clock, Log } from '@airlock/std'
import type { IsolationBackend } from '../isolation/backend.ts'
import type { HostPaths } from '../isolation/host-paths.ts'
import type { Probes } from '../isolation/probe/probes.ts'
import type { Worktrees } from '../isolation/worktrees/worktrees.ts'
import type { GuestListener } from '../session/guest-listener.ts'
import type { ArtifactStore } from '../artifacts/artifact-files.ts'
import type { Vault } from '../vault/vault.ts'
import { adopt } from './adopt.ts'
import type { DoorDirectories } from './door-directories.ts'
import { Freezes } from './freezes.ts'
import { GuestLinks } from './guest-links.ts'
import { keepOutputs } from './keep-outputs.ts'
import { LimitChanges } from './limits.ts'
import { Pauses } from './pauses.ts'
import { PermitBans } from './permit-bans.ts'
import type { PermitDesk } from './permit-desk.ts'
import { placesIn } from './places.ts'
import { Registry } from './registry.ts'
import { Runs } from './runs.ts'
import { Sampling } from './sampling.ts'
import { Seal } from './seal.ts'
import { Starts } from './start.ts'
import { Stops } from './stop.ts'
import { Watch } from './watch.ts'

export interface SandboxesOptions {
  readonly backend: IsolationBackend
  readonly probes: Probes
  readonly permits: PermitDesk
  readonly doors: DoorDirectories
  readonly vault: Vault
  readonly artifacts: ArtifactStore
  /** How the guest comes in whose control directory this is. */
  readonly listenerIn: (controlDir: string) => GuestListener
  readonly audit: AuditSink
  readonly clock: Clock
  readonly log: Log
  readonly failpoint: Failpoint
  readonly bootId: string
  readonly stateDir: string
  readonly runtimeDir: string
  readonly capacity: number
}

/** The sandboxes of this node: what lives, and for each thing that is done to them the part that does it. */
export interface Sandboxes {
  readonly registry: Registry
  readonly starts: Starts
  readonly stops: Stops
  readonly pauses: Pauses
  readonly limits: LimitChanges
  readonly freezes: Freezes
  readonly runs: Runs
  readonly sampling: Sampling
  readonly hostPaths: HostPaths
  readonly worktrees: Worktrees
  readonly vault: Vault
  readonly artifacts: ArtifactStore
  /** Leaves the sandboxes running. */
  close(): Promise<void>
}

/** Finds what an earlier process left, and is responsible for it from here on. */
export async function openSandboxes(options: SandboxesOptions): Promise<Sandboxes> {
  const { backend, clock } = options
  const registry = new Registry(options.capacity)
  const bans = new PermitBans(clock)
  const common = { ...options, registry, bans, places: placesIn(options) }
  const seal = new Seal({ ...options, hooks: [keepOutputs] })
  const watch = new Watch({ ...common, seal })
  const links = new GuestLinks({ ...common, watch })
  const limits = new LimitChanges(common)
  await adopt({ ...common, links, limits })
  return {
    registry,
    limits,
    starts: new Starts({ ...common, links }),
    stops: new Stops({ ...common, seal }),
    pauses: new Pauses(common),
    freezes: new Freezes(common),
    runs: new Runs({ registry, hostDisk: backend.hostDisk }),
    sampling: new Sampling(common),
    hostPaths: backend.hostPaths,
    worktrees: backend.worktrees,
    vault: options.vault,
    artifacts: options.artifacts,
    close: async () => {
      watch.close()
      await Promise.all([...registry.entries.values()].map(async ({ link }) => link.close()))
    },
  }
}
