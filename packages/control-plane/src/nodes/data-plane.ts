import type {
  DataPlaneHealth,
  EndReason,
  FileEntry,
  FileOperation,
  FindCommitRequest,
  FindFilesRequest,
  FoundPath,
  FreezeRequest,
  FrozenSandboxes,
  ImageReferences,
  ImportedImage,
  KeepFileRequest,
  Limits,
  LookAtPathRequest,
  NodeCommand,
  NodeCommandSpec,
  NodeExport,
  NodeExportRequest,
  NodeImageEvent,
  NodeImages,
  NodeMetrics,
  NodeSandbox,
  NodeSession,
  NodeSessionSpec,
  NodeStepSpec,
  NodeToken,
  SignalName,
  StartedSandbox,
  StoredArtifactBytes,
  StoppedSandbox,
  WorktreeBase,
  WorktreeDiff,
} from '@airlock/contract'
import type { GuestFound } from '@airlock/contract/guest'
import type { OutputItem } from '@airlock/wire'
import type { CommandRef } from '../commands/command-ref.ts'

/**
 * Where sandboxes run, as the control plane sees it: everything that it may ask of a node.
 *
 * **Order.** Calls for different sandboxes may overlap. Who asks sees to it that starts and stops of one sandbox do not.
 *
 * **Time.** Every call answers later and in bounded time; no answer is at hand. A stream ends by its signal at the latest.
 *
 * **Failure.** After `data_plane_unavailable`, `guest_lost` or `timeout` the call may or may not have acted. Every other error says
 * that it did not. Calls marked *same* may be made twice and act once.
 *
 * **Trust.** What a node answers was parsed: a node cannot make the control plane hold something that is not of the contract.
 */
export interface DataPlane {
  readonly images: DataPlaneImages
  /** Bytes of artifacts, on this node. */
  readonly artifacts: DataPlaneArtifacts

  health(): Promise<DataPlaneHealth>

  list(): Promise<readonly NodeSandbox[]>

  /** What the kernel says of every living sandbox now. */
  metrics(): Promise<NodeMetrics>

  /** What is at a path of the host, if it may be granted. */
  lookAtPath(asked: LookAtPathRequest): Promise<FoundPath>

  /** All or nothing. The permit is spent either way. */
  start(permit: string): Promise<StartedSandbox>

  /** Same. A token for the doors of a sandbox, in place of the one before. */
  giveToken(sandbox: string, token: NodeToken): Promise<void>

  /** Same. A sandbox that is not there is gone. `reason` is null where nobody knows it. */
  stop(sandbox: string, reason: EndReason | null): Promise<StoppedSandbox>

  /** Same. Processes of the sandbox stand still when this resolves. */
  pause(sandbox: string): Promise<void>

  /** Same. */
  resume(sandbox: string): Promise<void>

  /** Same. Answers the limits that the kernel enforces from now on: a disk that grows brings inodes. */
  changeLimits(sandbox: string, limits: Limits): Promise<Limits>

  /** Same. Everything in scope stands still, and permits of it that were signed before are worthless. */
  freeze(scope: FreezeRequest): Promise<FrozenSandboxes['sandboxes']>

  /** Same, by the id in `spec`. Answers once the command is taken. */
  run(sandbox: string, spec: NodeCommandSpec): Promise<NodeCommand>

  /** As `run`, with the output from its beginning and the end. */
  runFollowed(sandbox: string, spec: NodeCommandSpec, signal: AbortSignal): Promise<AsyncGenerator<OutputItem>>

  /** Same, by the id in `spec`. Gives code to a session, and follows it as `runFollowed` follows a command. */
  step(of: SessionRef, spec: NodeStepSpec, signal: AbortSignal): Promise<AsyncGenerator<OutputItem>>

  command(of: CommandRef): Promise<NodeCommand>

  /** Undefined when the command still runs after a while: ask again. */
  wait(of: CommandRef, signal: AbortSignal): Promise<NodeCommand | undefined>

  /** Output of a command or step from byte `from` on, then its end. Breaks off when the node goes away. */
  output(
    of: CommandRef,
    options: { readonly from: number; readonly isRichWhole?: boolean; readonly signal: AbortSignal },
  ): AsyncGenerator<OutputItem>

  /** Whole output of a command that exceeded its cap, also after its sandbox. `bytes` is its known length. */
  fullOutput(of: { readonly command: string; readonly bytes: number | undefined }, signal: AbortSignal): Promise<Sized>

  signal(of: CommandRef, name: SignalName): Promise<void>

  writeStdin(of: CommandRef, input: { readonly bytes: AsyncIterable<Buffer>; readonly end: boolean }): Promise<void>

  /** Same, by the id in `spec`. */
  openSession(sandbox: string, spec: NodeSessionSpec): Promise<NodeSession>

  /** Same. */
  interruptSession(of: SessionRef): Promise<void>

  restartSession(of: SessionRef): Promise<NodeSession>

  /** Same. A session that is not there is closed. */
  closeSession(of: SessionRef): Promise<void>

  readFile(sandbox: string, file: { readonly path: string; readonly signal: AbortSignal }): Promise<Sized>

  /** Answers how many bytes were written. */
  writeFile(
    sandbox: string,
    file: { readonly path: string; readonly append: boolean; readonly bytes: AsyncIterable<Buffer> },
  ): Promise<number>

  /** A directory as one tar. Its entries are unchecked. */
  readArchive(
    sandbox: string,
    of: { readonly path: string; readonly signal: AbortSignal },
  ): Promise<AsyncIterable<Buffer>>

  writeArchive(sandbox: string, of: { readonly path: string; readonly bytes: AsyncIterable<Buffer> }): Promise<void>

  file(sandbox: string, operation: FileOperation): Promise<FileAnswer>

  close(): void

  /** Same. A commit of a repository of the host. */
  findCommit(json: FindCommitRequest): Promise<WorktreeBase>

  /** Same. Work of a sandbox in its worktree so far, copied. */
  sealWorktree(sandbox: string): Promise<WorktreeDiff>

  /** Same. */
  sealedWorktree(sandbox: string, seal: string): Promise<WorktreeDiff>

  worktreePatch(sandbox: string, seal: string): Promise<Sized>

  /** Same. */
  exportWorktree(sandbox: string, json: NodeExportRequest): Promise<NodeExport>
}

/** What sandboxes of a node can stand on. */
export interface DataPlaneImages {
  list(): Promise<NodeImages>

  /** Same. Events until `ended`; a build that fails throws its error. */
  build(packages: readonly string[]): AsyncGenerator<Exclude<NodeImageEvent, { event: 'error' }>>

  import(tar: AsyncIterable<Buffer>): Promise<ImportedImage>

  /** Same. Removes images that nothing refers to; answers their names. */
  prune(references: ImageReferences): Promise<readonly string[]>
}

/** Files that are found in sandboxes, and what is kept of them. */
export interface DataPlaneArtifacts {
  /** Same. Regular files of a sandbox, by patterns; what it says is what the guest says. */
  find(sandbox: string, json: FindFilesRequest, signal: AbortSignal): Promise<GuestFound>

  /** Keeps a file of a sandbox: it is durable when this resolves. */
  keep(sandbox: string, json: KeepFileRequest, signal: AbortSignal): Promise<StoredArtifactBytes>

  /** The same of bytes that somebody sends. */
  put(
    of: ArtifactRef,
    what: { readonly bytes: AsyncIterable<Buffer>; readonly maxBytes: number },
  ): Promise<StoredArtifactBytes>

  /** Same. From a byte to another, both included. */
  read(
    of: ArtifactRef,
    part: { readonly from: number; readonly to: number; readonly signal: AbortSignal },
  ): Promise<AsyncIterable<Buffer>>

  /** Same. */
  remove(of: ArtifactRef, sha256: string | null): Promise<void>

  tenants(): Promise<readonly string[]>

  list(tenant: string): Promise<readonly string[]>
}

export interface ArtifactRef {
  readonly tenant: string
  readonly id: string
}

export interface SessionRef {
  readonly sandbox: string
  readonly session: string
}

/** Bytes whose number is known before the first. */
export interface Sized {
  readonly size: number
  readonly bytes: AsyncIterable<Buffer>
}

/** `file.stat` answers an entry, `file.list` a listing, the others nothing. */
export type FileAnswer = FileEntry | { readonly entries: readonly FileEntry[]; readonly truncated: boolean } | undefined
