import type {
  FindCommitRequest,
  NodeExport,
  NodeExportRequest,
  PermitMount,
  WorktreeBase,
  WorktreeDiff,
} from '@airlock/contract'

/**
 * Git repositories of this host as sandboxes work on them. The repository is read by its objects and refs alone, as its owner and
 * without rights; the sandbox has a copy of one commit, and what it changed is read from its disk from outside.
 */
export interface Worktrees {
  /** Which commit a name is. What cannot be had is `worktree_refused`. */
  findCommit(asked: FindCommitRequest): Promise<WorktreeBase>
  /** Puts the commit onto the disk of a sandbox that just started, before any code of the user. All or nothing for its start. */
  place(id: string, worktree: PermitMount, signal: AbortSignal): Promise<void>
  /** Copies what was changed so far, and says what it is. The copy never changes; the same work gives the same hash. */
  seal(id: string): Promise<WorktreeDiff>
  /** What a sealed copy is; `worktree_changed` when there is none of that hash. */
  sealed(id: string, seal: string): Promise<WorktreeDiff>
  /** A sealed copy as a unified patch; its bytes are those that the seal names. */
  patch(id: string, seal: string): Promise<Buffer>
  /** Writes a sealed copy into the repository as one commit and a new branch. The same request again has the same effect. */
  export(id: string, asked: NodeExportRequest): Promise<NodeExport>
}
