import { BOUNDS, type DoorName, type Limits } from '@airlock/contract'
import { INSIDE, type GuestBoot } from '@airlock/contract/guest'
import { DISK_DIRS } from './disk.ts'
import type { GrantBind } from './grants/grants.ts'
import type { Bind } from './groups/groups.ts'
import { STAGED, stagedDoor } from './paths.ts'
import { PROC_FILES } from './proc-files.ts'
import type { OciSeccomp } from './seccomp.ts'
import type { UidRange } from './uid-ranges.ts'

export interface BundleSpec {
  readonly boot: GuestBoot
  readonly limits: Limits
  readonly uidRange: UidRange
  readonly seccomp: OciSeccomp
  /** The same as crun compiled it before, in base64: it takes this instead, and saves the time. */
  readonly compiledSeccomp: string | undefined
  readonly imageBinds: readonly Bind[]
  readonly groupBinds: readonly Bind[]
  readonly grants: readonly GrantBind[]
  readonly doors: readonly DoorName[]
  /** Whether files of ours lie over some of /proc. The kernel of gVisor has files of its own. */
  readonly hasProcFiles: boolean
  /** For a runtime that joins a group itself. */
  readonly cgroupsPath: string | undefined
  /** The most that anything inside may ever have; user code is held to its own limit by who starts it. */
  readonly maxOpenFiles: number
}

/** Who user code is inside. */
export const USER = { uid: 1000, gid: 1000 } as const

/** New namespaces that the runtime makes; the cgroup namespace is the launcher's. */
const NAMESPACES = ['user', 'pid', 'network', 'ipc', 'uts', 'mount'] as const

/** All that the guest may ever hold: enough to become the user and to end its processes. */
const CAPABILITIES = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP', 'CAP_KILL'] as const

/** Facts about the host that a process list of a sandbox does not need. */
const MASKED = [
  'acpi',
  'cmdline',
  'diskstats',
  'fs',
  'partitions',
  'sys/kernel/random/boot_id',
  'asound',
  'interrupts',
  'kcore',
  'keys',
  'kmsg',
  'kpagecount',
  'kpageflags',
  'latency_stats',
]
  .concat(['sched_debug', 'scsi', 'sysrq-trigger', 'timer_list', 'timer_stats', 'vmallocinfo', 'zoneinfo'])
  // Counts of the whole host, which rise with each command of a neighbour.
  .concat(['buddyinfo', 'cgroups', 'pressure', 'schedstat', 'softirqs', 'sys/kernel/pty/nr'])
  .concat(['aio-nr', 'dentry-state', 'file-nr', 'inode-nr', 'inode-state'].map((name) => `sys/fs/${name}`))
  .map((name) => `/proc/${name}`)
const READ_ONLY = ['bus', 'irq', 'sys'].map((name) => `/proc/${name}`)

/** The guest computes little: threads beyond one would only cost memory, and time whenever it changes its uid. */
const GUEST_OPTIONS = '--v8-pool-size=1'

/** PID 1 must reap whatever is orphaned, which Node does not do and a shell does. */
export function initArgs({ programs }: GuestBoot): readonly string[] {
  const node = programs?.node ?? [INSIDE.node]
  const guest = [...node, GUEST_OPTIONS, INSIDE.guest].join(' ')
  return [...(programs?.sh ?? ['/bin/sh']), '-c', `${guest} "$1" & wait $!`, 'init']
}

/** An annotation of crun; whoever does not know it reads the profile, which is there as well. */
const COMPILED_SECCOMP = 'run.oci.seccomp_bpf_data'

/** OOM on the host itself: sandboxes first. */
const OOM_SCORE = 500

const MIB = 1024 * 1024

/** Each costs memory of the sandbox, about a kilobyte. */
const MAX_TMP_INODES = 65_536

/** The stdin of one step in each session. */
const STEPS_BYTES = (BOUNDS.sessions + 1) * BOUNDS.stdinBytes

/** The `config.json` of a sandbox. What is read back from the kernel afterwards is spelled out. */
export interface Bundle {
  readonly [part: string]: unknown
  readonly mounts: readonly BundleMount[]
  readonly linux: {
    readonly [part: string]: unknown
    readonly maskedPaths: readonly string[]
    readonly readonlyPaths: readonly string[]
  }
}

/** Complete: nothing in it is left to a default of the runtime. */
export function makeBundle(spec: BundleSpec): Bundle {
  const mapping = [{ containerID: 0, hostID: spec.uidRange.first, size: spec.uidRange.count }]
  return {
    ociVersion: '1.0.2',
    hostname: 'sandbox',
    root: { path: STAGED.rootfs, readonly: true },
    process: makeProcess(spec),
    mounts: makeMounts(spec),
    ...(spec.compiledSeccomp === undefined ? {} : { annotations: { [COMPILED_SECCOMP]: spec.compiledSeccomp } }),
    linux: {
      namespaces: NAMESPACES.map((type) => ({ type })),
      uidMappings: mapping,
      gidMappings: mapping,
      maskedPaths: MASKED,
      readonlyPaths: READ_ONLY,
      rootfsPropagation: 'private',
      seccomp: spec.seccomp,
      ...(spec.cgroupsPath === undefined ? {} : { cgroupsPath: spec.cgroupsPath }),
    },
  }
}

function makeProcess(spec: BundleSpec): Readonly<Record<string, unknown>> {
  return {
    terminal: false,
    user: { uid: 0, gid: 0, umask: 0o022 },
    args: [...initArgs(spec.boot), JSON.stringify(spec.boot)],
    // Where the image is not ours, not even a locale is read from it.
    env: [`PATH=${spec.boot.env['PATH'] ?? ''}`, `LANG=${spec.boot.programs ? 'C' : 'C.UTF-8'}`],
    cwd: '/',
    noNewPrivileges: true,
    oomScoreAdj: OOM_SCORE,
    capabilities: {
      bounding: CAPABILITIES,
      effective: CAPABILITIES,
      permitted: CAPABILITIES,
      inheritable: [],
      ambient: [],
    },
    rlimits: [
      { type: 'RLIMIT_CORE', soft: 0, hard: 0 },
      { type: 'RLIMIT_NOFILE', soft: Math.min(1024, spec.maxOpenFiles), hard: spec.maxOpenFiles },
    ],
  }
}

export interface BundleMount {
  readonly destination: string
  readonly type: string
  readonly source: string
  readonly options: readonly string[]
}

function makeMounts(spec: BundleSpec): readonly BundleMount[] {
  // Memory file systems are memory: together they stay well below the limit, so that filling them is ENOSPC, not OOM.
  const tmpBytes = Math.floor(spec.limits.memoryBytes / 4)
  const tmpInodes = Math.min(MAX_TMP_INODES, spec.limits.inodes)
  const shmBytes = Math.min(64 * MIB, Math.floor(spec.limits.memoryBytes / 8))
  return [
    ...spec.imageBinds.map((bind) => readOnly(bind)),
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'nodev', 'noexec'] },
    ...(spec.hasProcFiles ? PROC_FILES.map((name) => procFile(name)) : []),
    tmpfs('/dev', ['nosuid', 'noexec', 'mode=755', 'size=65536', 'nr_inodes=64']),
    {
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5', 'max=64'],
    },
    tmpfs('/dev/shm', ['nosuid', 'nodev', 'noexec', 'mode=1777', `size=${shmBytes}`, 'nr_inodes=1024']),
    tmpfs('/tmp', ['nosuid', 'nodev', 'mode=1777', `size=${tmpBytes}`, `nr_inodes=${tmpInodes}`]),
    tmpfs('/run', ['nosuid', 'nodev', 'noexec', 'mode=755', 'size=1048576', 'nr_inodes=1024']),
    tmpfs(INSIDE.private, ['nosuid', 'nodev', 'noexec', 'mode=700', 'size=4194304', 'nr_inodes=1024']),
    tmpfs(INSIDE.steps, ['nosuid', 'nodev', 'noexec', 'mode=711', `size=${STEPS_BYTES}`, 'nr_inodes=1024']),
    readOnly({ source: STAGED.control, destination: INSIDE.controlDir }, ['noexec']),
    ...spec.doors.map((name) =>
      readOnly({ source: stagedDoor(name), destination: `${INSIDE.doors}/${name}` }, ['noexec']),
    ),
    ...spec.groupBinds.map((bind) => writable(bind, ['noexec'])),
    readOnly({ source: STAGED.program, destination: INSIDE.program }),
    writable({ source: `${STAGED.disk}/${DISK_DIRS.workspace}`, destination: INSIDE.workspace }),
    writable({ source: `${STAGED.disk}/${DISK_DIRS.home}`, destination: INSIDE.home }),
    // Last, for they may be in any of the places above.
    ...spec.grants.map((grant) => (grant.isWritable ? writable(grant) : readOnly(grant))),
  ]
}

function procFile(name: string): BundleMount {
  return readOnly({ source: `${STAGED.proc}/${name}`, destination: `/proc/${name}` }, ['noexec'])
}

function tmpfs(destination: string, options: readonly string[]): BundleMount {
  return { destination, type: 'tmpfs', source: 'tmpfs', options }
}

function readOnly({ source, destination }: Bind, more: readonly string[] = []): BundleMount {
  return { destination, type: 'bind', source, options: ['rbind', 'rprivate', 'ro', 'nosuid', 'nodev', ...more] }
}

function writable({ source, destination }: Bind, more: readonly string[] = []): BundleMount {
  return { destination, type: 'bind', source, options: ['rbind', 'rprivate', 'rw', 'nosuid', 'nodev', ...more] }
}
