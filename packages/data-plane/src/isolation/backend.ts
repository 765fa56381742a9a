import type { DoorName, EffectiveIsolation, Limits, NodeSample, PermitMount } from '@airlock/contract'
import type { HostDisk } from './host-disk.ts'
import type { HostPaths } from './host-paths.ts'
import type { Images } from './images.ts'
import type { Worktrees } from './worktrees/worktrees.ts'

/**
 * Runs sandboxes on this host: the only place that knows namespaces, cgroups and mounts.
 *
 * **A sandbox** is a set of processes with the guest as its root, behind a wall of its own: user, pid, net, ipc, uts,
 * mount and cgroup namespaces, a private range of host uids, a read-only root, a seccomp allowlist, no network device
 * but loopback, and limits that the kernel enforces. User code is uid 1000 with no capability; the guest is uid 0 of the
 * namespace with SETUID, SETGID, SETPCAP and KILL, and user code cannot signal, trace or read it.
 *
 * **Order.** Calls for different sandboxes may overlap. Calls for one sandbox are made one after another by the caller,
 * except `stop`, which may come at any time, also while `start` is under way: it then waits for that start's own end and
 * destroys what it left.
 *
 * **Failure.** `start` is all or nothing: when it throws, everything it made is gone, or will be found by `reap`. It fails
 * closed: a limit that cannot be enforced is `isolation_unavailable`, never a warning. Every host object (process, group,
 * mount, loop device, directory, uid range) is named after the sandbox id, so that `reap` finds it without any memory of
 * who made it. An exit code of a runtime proves nothing: `stop` looks at the kernel and resolves only when every process
 * is gone and every group removed.
 *
 * **Life.** Sandboxes are started detached. The death of this process leaves them running; `adopt` finds them again.
 */
export interface IsolationBackend {
  readonly name: string
  /** What this backend can enforce here, now, found by trying. Admission refuses what is not in it. */
  readonly capabilities: Capabilities
  /** What sandboxes can stand on. */
  readonly images: Images
  /** What of this host may be granted. */
  readonly hostPaths: HostPaths
  /** Git repositories of this host, for sandboxes that have one. */
  readonly worktrees: Worktrees
  /** The disk of the host: what sandboxes and images take never reaches its reserve. */
  readonly hostDisk: HostDisk

  /**
   * Starts the guest inside a fresh sandbox and returns once its first process runs; the guest dials the socket in
   * `spec.controlDir` when it is up. Fails closed.
   */
  start(spec: SandboxSpec, signal: AbortSignal): Promise<StartedSandbox>

  /** A name for all that decides which system calls work inside: another runtime, list, image or guest has another name. */
  wallOf(tier: SandboxSpec['tier'], image: string): string

  /** The sandbox if it still runs: after a restart of ours, or to look whether it died. Never starts anything. */
  adopt(id: string): Promise<RunningSandbox | undefined>

  /**
   * Holds a living sandbox, frozen or not, to other limits from now on: all of them or none. Answers what it is held to. What
   * cannot be changed while it lives is `limit_fixed`, memory that it uses already is `limit_in_use`. Done again after it was
   * broken off, it leaves what the last one asked for.
   */
  changeLimits(id: string, change: LimitChange): Promise<Limits>

  /** Finishes a change that was broken off as far as it cannot be taken back; answers what the sandbox is held to then. */
  settleLimits(id: string, limits: Limits): Promise<Limits>

  /** What the disks of all sandboxes take of the disk of the host now. */
  takenBytes(): Promise<number>

  /** Stops every process of the sandbox, guest included, where it stands. Frozen processes hold their memory. */
  freeze(id: string): Promise<void>
  thaw(id: string): Promise<void>
  /** Whether it stands still, whoever saw to that. */
  isFrozen(id: string): Promise<boolean>

  /** Read from the kernel, outside: what the sandbox says about itself does not count. Undefined when it is gone. */
  stats(id: string): Promise<SandboxStats | undefined>

  /**
   * What the kernel says of each of these now, read outside; those that are gone are left out. Nobody waits long for it: other
   * work has its turn in between.
   */
  sample(ids: readonly string[]): Promise<readonly NodeSample[]>

  /**
   * How often the kernel denied user code memory or processes so far, and of processes only what a child group can be told apart
   * by; null where it does not count. Undefined when it is gone. Cheap: who asks before and after knows what came between.
   */
  strain(id: string, child: string | undefined): Promise<Strain | undefined>

  /** Whether a place that user code writes to has no room left for a byte or for a file. */
  isDiskFull(id: string): Promise<boolean>

  /** What the guest of a sandbox that died by itself was denied; undefined when it was something else. */
  lostFor(id: string, tier: SandboxSpec['tier']): Promise<LostFor | undefined>

  /** What one child group, that of a command or a session, has used so far. Undefined where it cannot be told. */
  groupUsage(id: string, child: string): Promise<GroupUsage | undefined>

  /**
   * Ends the sandbox: freeze, kill, thaw, until its groups are empty and removed; then mounts, disk and directories.
   * Idempotent: an unknown id resolves. Needs no free disk. Throws only when a process would not die.
   */
  stop(id: string): Promise<void>

  /** Ids of everything on this host that this backend made and that is not in `keep`, destroyed when it returns. */
  reap(keep: ReadonlySet<string>): Promise<readonly string[]>
}

export interface SandboxSpec {
  readonly id: string
  readonly limits: Limits
  /** `host`, or the name of an image; one that is not there is `template_failed`. */
  readonly image: string
  readonly tier: 'standard' | 'strict'
  /** Host directory that holds the guest's control socket; bound read-only where only the guest can enter. */
  readonly controlDir: string
  /**
   * What of the host is seen inside: exactly what these say, checked once more when it is mounted. What is there no longer,
   * is another than what was granted, or may not be granted is `grant_refused`.
   */
  readonly mounts: readonly PermitMount[]
  /** Directories of the host, each seen inside by its name, read-only: sockets that appear there later appear inside. */
  readonly doors: readonly { readonly name: DoorName; readonly source: string }[]
  /** Nobody asked for it: failpoints are about requests, and pass it by. */
  readonly isThrowAway?: true
}

export interface LimitChange {
  readonly tier: 'standard' | 'strict'
  readonly from: Limits
  readonly to: Limits
}

export interface RunningSandbox {
  readonly id: string
  /** The first process inside, as the host sees it. A pid alone may be reused: both must match. */
  readonly init: { readonly pid: number; readonly startTime: string }
}

export interface StartedSandbox extends RunningSandbox {
  readonly isolation: EffectiveIsolation
  /** What it stands on, by a name that says what is in it. */
  readonly image: string
}

export interface SandboxStats {
  readonly processes: number
  readonly memoryBytes: number | null
  readonly memoryPeakBytes: number | null
  readonly cpuMs: number | null
  readonly oomKills: number | null
}

/** How often user code was denied what it asked for, since the start of the sandbox; null is what this kernel does not tell. */
export interface Strain {
  readonly oomKills: number | null
  readonly pidsRefused: number | null
}

/** Denials that end a guest. */
export type LostFor = 'out_of_memory' | 'pids_exhausted'

export interface GroupUsage {
  readonly cpuMs: number | null
  readonly memoryPeakBytes: number | null
  /** Counted for all of user code together: true of the group only as long as nothing else ran in the sandbox. */
  readonly isWhole: boolean
}

export interface Capabilities {
  readonly tiers: readonly ('standard' | 'strict')[]
  readonly network: 'none' | 'policy-only'
  readonly pause: boolean
  readonly separateGuestUid: boolean
  readonly limits: EffectiveIsolation['limits']
  /** The disk of a living sandbox can be made larger. */
  readonly growsDisks: boolean
  readonly cgroup: 'v1' | 'v2' | 'hybrid'
  /** In what the strict tier is not as the standard one is; the conformance suite holds it to each. */
  readonly strictDiffers: readonly StrictDifference[]
  /** `idmap`: owners on the host can be somebody else inside. Without it nothing of the host is mounted for writing. */
  readonly mounts: readonly 'idmap'[]
}

/**
 * Sandboxes of the strict tier are a kernel of their own in one process of the host.
 * A difference is what cannot be had there, and never less of a wall towards the host.
 */
export const STRICT_DIFFERENCES = [
  /** Memory and processes are limited for guest, user code and that kernel together: going beyond may end the sandbox. */
  'limits-end-sandbox',
  /** A command has no group: what leaves its process session outlives a kill of the command, not the sandbox. */
  'no-command-groups',
  /** User code may read environment and arguments of the guest, and list its descriptors. Nothing secret is in them. */
  'guest-readable',
  /** On the host its process has no pid namespace and may run as nobody: inside, processes are numbered by that kernel. */
  'host-pid-numbers',
  /** Grants are read-only: what makes files for it on the host has no uid that a grant knows. */
  'read-only-grants',
  /** There is a /sys, which that kernel makes up. */
  'synthetic-sys',
  /** Files in /tmp and /dev/shm are in that kernel's memory: they count as memory, and outside nobody can tell them apart. */
  'untold-memory-files',
  /** Files in memory, as in /tmp, are bounded by memory alone and not by their number. */
  'uncounted-memory-files',
  /** User code may change the nice value and the affinity of the guest: numbers that kernel keeps, and makes nothing of. */
  'guest-priority',
  /** What is refused is always EPERM; `clone3`, which must look absent, is left to that kernel. */
  'one-errno',
] as const
export type StrictDifference = (typeof STRICT_DIFFERENCES)[number]
