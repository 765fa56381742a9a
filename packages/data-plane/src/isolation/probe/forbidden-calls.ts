/** A system call that user code must not get through, made so that it changes nothing where it does. */
export interface ForbiddenCall {
  readonly group: string
  readonly name: string
  /** As x86-64 and arm64 number it. */
  readonly number: { readonly x64: number; readonly arm64: number }
  readonly args: readonly number[]
  /** Whether gVisor's kernel answers it itself, for runsc knows no other refusal than EPERM. */
  readonly isLeftToGvisor?: true
}

/** No address that is mapped: whoever reads there says EFAULT, which is not a refusal. */
const NOWHERE = 1
const NO_FD = -1
const HERE = -100
const SET_UID = 0o4755
const O_CREAT = 0o100

/** A thread without shared signal handlers is no valid request: the kernel refuses it with EINVAL before it looks at the rest. */
const NO_SUCH_THREAD = 0x1_00_00

/** Calls of every group that the list leaves out, and arguments that it looks at. */
export const FORBIDDEN_CALLS: readonly ForbiddenCall[] = [
  call('keyring: keyctl', [250, 219], [0, -3, 0]),
  call('keyring: add_key', [248, 217], [NOWHERE, NOWHERE, NOWHERE, 1, -3]),
  call('keyring: request_key', [249, 218], [NOWHERE, NOWHERE, NOWHERE, 0]),

  call('namespaces: unshare', [272, 97], [0x10_00_00_01]),
  call('namespaces: setns', [308, 268], [NO_FD, 0]),
  ...namespaceFlags().map(([name, flag]) => call(`clone flags: clone ${name}`, [56, 220], [flag | NO_SUCH_THREAD])),
  { ...call('clone flags: clone3', [435, 435], [NOWHERE, 64]), isLeftToGvisor: true },

  call('mounts: mount', [165, 40], [NOWHERE, NOWHERE, NOWHERE, 0, NOWHERE]),
  call('mounts: umount2', [166, 39], [NOWHERE, 0]),
  call('mounts: pivot_root', [155, 41], [NOWHERE, NOWHERE]),
  call('mounts: chroot', [161, 51], [NOWHERE]),
  call('mounts: open_tree', [428, 428], [NO_FD, NOWHERE, 0]),
  call('mounts: move_mount', [429, 429], [NO_FD, NOWHERE, NO_FD, NOWHERE, 0]),
  call('mounts: fsopen', [430, 430], [NOWHERE, 0]),
  call('mounts: fsconfig', [431, 431], [NO_FD, 0, NOWHERE, NOWHERE, 0]),
  call('mounts: fsmount', [432, 432], [NO_FD, 0, 0]),
  call('mounts: fspick', [433, 433], [NO_FD, NOWHERE, 0]),
  call('mounts: mount_setattr', [442, 442], [NO_FD, NOWHERE, 0, NOWHERE, 32]),

  call('file handles: name_to_handle_at', [303, 264], [HERE, NOWHERE, NOWHERE, NOWHERE, 0]),
  call('file handles: open_by_handle_at', [304, 265], [NO_FD, NOWHERE, 0]),

  call('other processes: ptrace', [101, 117], [2, 0, 0, 0]),
  call('other processes: process_vm_readv', [310, 270], [0, 0, 0, 0, 0, 0]),
  call('other processes: process_vm_writev', [311, 271], [0, 0, 0, 0, 0, 0]),
  call('other processes: pidfd_getfd', [438, 438], [NO_FD, 0, 0]),
  call('other processes: kcmp', [312, 272], [0, 0, 0, 0, 0]),
  call('other processes: move_pages', [279, 239], [0, 1, NOWHERE, NOWHERE, NOWHERE, 0]),

  call('bpf: bpf', [321, 280], [0, NOWHERE, 8]),
  call('perf: perf_event_open', [298, 241], [NOWHERE, 0, -1, NO_FD, 0]),
  call('userfaultfd: userfaultfd', [323, 282], [1]),
  call('io_uring: io_uring_setup', [425, 425], [1, NOWHERE]),
  call('io_uring: io_uring_enter', [426, 426], [NO_FD, 0, 0, 0, 0, 0]),
  call('io_uring: io_uring_register', [427, 427], [NO_FD, 0, NOWHERE, 0]),

  call('modules: init_module', [175, 105], [NOWHERE, 0, NOWHERE]),
  call('modules: finit_module', [313, 273], [NO_FD, NOWHERE, 0]),
  call('modules: delete_module', [176, 106], [NOWHERE, 0]),
  call('kexec: kexec_load', [246, 104], [0, 0, NOWHERE, -1]),
  call('kexec: kexec_file_load', [320, 294], [NO_FD, NO_FD, 0, NOWHERE, 0]),
  call('kexec: reboot', [169, 142], [0, 0, 0, 0]),

  call('clock: settimeofday', [164, 170], [NOWHERE, 0]),
  call('clock: clock_settime', [227, 112], [0, NOWHERE]),
  call('clock: adjtimex', [159, 171], [NOWHERE]),
  call('clock: clock_adjtime', [305, 266], [0, NOWHERE]),

  call('host: swapon', [167, 224], [NOWHERE, 0]),
  call('host: swapoff', [168, 225], [NOWHERE]),
  call('host: acct', [163, 89], [NOWHERE]),
  call('host: quotactl', [179, 60], [0, NOWHERE, 0, NOWHERE]),
  call('host: syslog', [103, 116], [10, 0, 0]),
  call('host: fanotify_init', [300, 262], [0, 0]),
  call('host: sethostname', [170, 161], [NOWHERE, 1]),

  ...socketKinds().map(([name, family, protocol]) => call(`sockets: socket ${name}`, [41, 198], [family, 3, protocol])),
  call('terminals: ioctl TIOCSTI', [16, 29], [NO_FD, 0x54_12, 0]),
  call('terminals: ioctl TIOCSTI with a high bit', [16, 29], [NO_FD, 0x1_00_00_54_12, 0]),
  call('terminals: ioctl TIOCSETD', [16, 29], [NO_FD, 0x54_23, 0]),
  call('personality: personality ADDR_NO_RANDOMIZE', [135, 92], [0x4_00_00]),
  call('set-uid modes: fchmodat', [268, 53], [HERE, NOWHERE, SET_UID]),
  call('set-uid modes: mknodat', [259, 33], [HERE, NOWHERE, SET_UID, 0]),
  call('set-uid modes: openat', [257, 56], [HERE, NOWHERE, O_CREAT, SET_UID]),
  call('set-uid modes: openat2', [437, 437], [HERE, NOWHERE, NOWHERE, 24]),
]

function namespaceFlags(): readonly (readonly [string, number])[] {
  return [
    ['NEWNS', 0x2_00_00],
    ['NEWCGROUP', 0x2_00_00_00],
    ['NEWUTS', 0x4_00_00_00],
    ['NEWIPC', 0x8_00_00_00],
    ['NEWUSER', 0x10_00_00_00],
    ['NEWPID', 0x20_00_00_00],
    ['NEWNET', 0x40_00_00_00],
  ]
}

function socketKinds(): readonly (readonly [string, number, number])[] {
  return [
    ['AF_KEY', 15, 2],
    ['netlink of events', 16, 15],
    ['netlink of audit', 16, 9],
    ['AF_PACKET', 17, 3],
    ['AF_CAN', 29, 1],
    ['AF_BLUETOOTH', 31, 0],
    ['AF_ALG', 38, 0],
    ['AF_VSOCK', 40, 0],
    ['AF_XDP', 44, 0],
  ]
}

/** `what` is the group and the name, `numbers` those of x86-64 and arm64. */
function call(what: string, [x64, arm64]: readonly [number, number], args: readonly number[]): ForbiddenCall {
  const [group = '', name = ''] = what.split(': ')
  return { group, name, number: { x64, arm64 }, args }
}
