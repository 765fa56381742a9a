/**
 * What the guest is started with: one JSON argument of `node guest.cjs`. Nothing in it is secret, for user code may be
 * able to read it (G4).
 */
export interface GuestBoot {
  /** The control socket: the host listens, the guest dials and dials again. */
  readonly socket: string
  /** Who user code is. */
  readonly user: { readonly uid: number; readonly gid: number }
  /** The whole environment of user code, before what a caller adds. */
  readonly env: Readonly<Record<string, string>>
  readonly groups: GuestGroups
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

/** Where things are inside every sandbox. */
export const INSIDE = {
  workspace: '/workspace',
  home: '/home/user',
  /** Read-only: our Node and the guest. */
  program: '/opt/airlock',
  node: '/opt/airlock/bin/node',
  guest: '/opt/airlock/guest.cjs',
  /** tmpfs, 0700, the namespace's root: user code cannot enter. */
  private: '/run/guest',
  controlDir: '/run/guest/control',
  controlSocket: '/run/guest/control/guest.sock',
  groups: '/run/guest/groups',
  /** The doors this sandbox was permitted, nothing else. */
  doors: '/run/airlock',
} as const
