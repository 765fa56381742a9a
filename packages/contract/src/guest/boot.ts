/**
 * What the guest is started with: one JSON argument of `node guest.cjs`. Nothing in it is secret, for user code may be
 * able to read it (G4).
 */
interface GuestBase {
  /** Who user code is. */
  readonly user: { readonly uid: number; readonly gid: number }
  /** The whole environment of user code, before what a caller adds. */
  readonly env: Readonly<Record<string, string>>
  /** Variables of `env` that are the number of processors in /proc/stat, whenever something starts. Absent: as they are. */
  readonly threads?: readonly string[]
  /** The drivers of interpreters, one file each, which user code can read. */
  readonly kernels: string
  /** Where the streams of steps lie: made by the guest unless it is there; user code may enter and not list it. */
  readonly steps: string
  /** Where programs of ours are that an image may lack. Absent: where Debian has them. */
  readonly programs?: GuestPrograms
}

/** In a sandbox: the guest dials its host. */
export interface GuestBoot extends GuestBase {
  /** The control socket: the host listens, the guest dials and dials again. */
  readonly socket: string
  /** Absent where the kernel inside has none: what leaves its process session is then ended with the sandbox. */
  readonly groups?: GuestGroups
  /** Where the doors are, and where the token goes. Absent where a sandbox has no door. */
  readonly doors?: string
  /** Ports of loopback that lead to doors, bound before user code runs. Absent where none does. */
  readonly bridges?: readonly GuestBridge[]
}

/** A port of the sandbox's own loopback that leads to a door. */
export interface GuestBridge {
  readonly port: number
  /** The socket of the door: the doors process listens there, and may be restarted. */
  readonly socket: string
}

/** In a pod: the guest listens for HTTP itself, and is then the session agent. */
export interface AgentBoot extends GuestBase {
  readonly listen: { readonly host: string; readonly port: number }
  /** Absent where no group is delegated: what leaves its process session then lives until the last session ends. */
  readonly groups?: GuestGroups
}

/** Each as the words that come before its arguments: a program, or a loader and a program. */
export interface GuestPrograms {
  readonly sh: readonly string[]
  readonly setpriv: readonly string[]
  readonly env: readonly string[]
  readonly mkfifo: readonly string[]
  readonly mv: readonly string[]
  readonly rm: readonly string[]
  readonly node: readonly string[]
}

/** How a command gets into a group of its own, over every kind of cgroup. */
export interface GuestGroups {
  /** Files into which a new process writes `0`, in this order, before it becomes user code. */
  readonly join: readonly string[]
  /** The directory in which each command gets a child group, named by its id. */
  readonly commands: string
  /** The file of a child group into which the process writes `0`. */
  readonly joinFile: 'tasks' | 'cgroup.procs'
  /** How a whole child group is ended: by `cgroup.kill`, or by `pids.max` = 0 and SIGKILL until it is empty. */
  readonly kill: 'cgroup.kill' | 'pids.max'
}

/** The port of the door `llm` on 127.0.0.1. */
export const LLM_PORT = 47_080

/** The same of the egress door: a proxy for HTTP and CONNECT. */
export const EGRESS_PORT = 47_081

/** Where things are inside every sandbox. */
export const INSIDE = {
  workspace: '/workspace',
  home: '/home/user',
  /** What the agent was granted of the host, unless it was put elsewhere. */
  grants: '/grants',
  /** Read-only: our Node and the guest. */
  program: '/opt/airlock',
  node: '/opt/airlock/bin/node',
  /** First in the path of user code: programs that explain what cannot work here. */
  wrappers: '/opt/airlock/wrappers',
  /** The same of Python, and `python`: first in the path where the programs of the host are. */
  python: '/opt/airlock/python',
  /** Last in the path of an image: `python`, where it has only `python3`. */
  fallback: '/opt/airlock/fallback',
  /** Programs and libraries of the host, for images that have none. */
  closure: '/opt/airlock/closure',
  guest: '/opt/airlock/guest.cjs',
  /** Tries every system call that must fail. */
  probe: '/opt/airlock/probe',
  /** Read-only: the drivers of interpreters, one file each. */
  kernels: '/opt/airlock/kernels',
  /** tmpfs, 0700, the namespace's root: user code cannot enter. */
  private: '/run/guest',
  controlDir: '/run/guest/control',
  controlSocket: '/run/guest/control/guest.sock',
  groups: '/run/guest/groups',
  /** tmpfs, 0711: user code opens what it was named, and cannot look around. */
  steps: '/run/steps',
  /** The doors this sandbox was permitted, nothing else: each in a directory of its name, which the host holds. */
  doors: '/run/airlock',
  /** The door `control`, by the name that programs use: a link, which the guest makes. */
  doorSocket: '/run/airlock/airlock.sock',
  /** The door `broker`. */
  toolsSocket: '/run/airlock/broker/broker.sock',
  /** Written by the guest: user code reads it and cannot change it. */
  token: '/run/airlock/token',
} as const
