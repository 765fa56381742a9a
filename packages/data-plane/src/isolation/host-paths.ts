import type { FoundPath, LookAtPathRequest } from '@airlock/contract'

/** What of this host may be granted to sandboxes. */
export interface HostPaths {
  /**
   * What is at a path now, for a permit to say. Follows no link; what may never be granted, or not like this, is
   * `grant_refused`. Changes nothing.
   */
  look(asked: LookAtPathRequest): Promise<FoundPath>
}
