import type { DoorConfig, OpenDoors, UpstreamHealth } from '@airlock/contract'

/**
 * Doors of the sandboxes of a node, as the control plane sees them. Every call may be made twice and acts once, and ends in bounded
 * time. `door_unavailable` means that nobody answered: a door may or may not be open.
 */
export interface Doors {
  list(): Promise<readonly OpenDoors[]>

  /** Replaces the doors of the sandbox that are open. */
  open(sandbox: string, doors: readonly DoorConfig[]): Promise<void>

  /** Resolves when nothing that is asked at a door of the sandbox has an effect any more. */
  shut(sandbox: string): Promise<void>

  /** Health of the upstreams as `keys` sees them. `not_ready` when `keys` does not answer. */
  upstreams(): Promise<readonly UpstreamHealth[]>

  close(): void
}
