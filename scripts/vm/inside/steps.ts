export interface Step {
  readonly name: string
  readonly argv: readonly string[]
  /** A bound against hanging. */
  readonly minutes: number
  /** Whether it leaves counts of tests. */
  readonly hasTests?: boolean
}

const CLI = 'packages/cli/bin/airlock.js'
const DOCTOR = ['node', CLI, 'doctor', '--json']

/** As in a container: a control group that is the root of all that can be seen, with us in it. */
const IN_A_GROUP = [
  ...'systemd-run --quiet --wait --pipe --collect --property=Delegate=yes --same-dir --setenv=PATH'.split(' '),
  ...'unshare --cgroup --mount sh -euc'.split(' '),
  'umount -l /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"',
  'sh',
]

/** A conformant backend is the same whichever runtime it starts, and there is one here. */
const CONFORMANCE = 'packages/data-plane/src/isolation/backends/oci/oci.conformance.test.ts'

/** Every process dies once, where control groups, mounts and evidence are just being changed. Elsewhere all hosts are alike. */
const CRASHES = [
  'create.launched of the data-plane',
  'create.guest-attached of the supervisor',
  'command.exited of the control-plane',
  'terminate.frozen of the data-plane',
  'record.written of the recorder',
]

/** The whole life of a sandbox, and what the kernel does when it ends by itself. */
const WALK = [
  'creates, runs, reads a file back',
  'carries bytes',
  'streams output',
  'whose guest died',
  'leaves nothing',
]

/**
 * What runs in the machine: only what may differ by host. Emulated, everything takes ten times as long or more, and the waits of the
 * kill -9 cases are too short for that: there the service is killed, and they are left out.
 */
export function steps(isEmulated: boolean): readonly Step[] {
  const crashes = tests('kill -9', { file: 'test/lifecycle/crash.test.ts', names: CRASHES, minutes: 25 })
  return [
    { name: 'machine', argv: ['sh', '-c', MACHINE], minutes: 1 },
    { name: 'doctor', argv: DOCTOR, minutes: 5 },
    { name: 'doctor in a group', argv: [...IN_A_GROUP, ...DOCTOR], minutes: 5 },
    tests('conformance', { file: CONFORMANCE, names: ['with crun'], minutes: 15 }),
    tests('service', { file: 'test/vm/inside/service.test.ts', minutes: 20 }),
    tests('walk', { file: 'test/lifecycle/walk.test.ts', names: WALK, minutes: 15 }),
    ...(isEmulated ? [] : [crashes]),
  ]
}

const MACHINE = `uname -r
systemctl --version | head -n 1
findmnt --noheadings --output FSTYPE,OPTIONS /sys/fs/cgroup
cat /sys/fs/cgroup/cgroup.controllers`

function tests(
  name: string,
  { file, names, minutes }: { readonly file: string; readonly names?: readonly string[]; readonly minutes: number },
): Step {
  const vitest = 'node node_modules/vitest/vitest.mjs run --config scripts/vm/inside/vitest.config.ts'.split(' ')
  const pattern = names === undefined ? [] : ['--testNamePattern', names.map(escapeRegExp).join('|')]
  return { name, argv: [...vitest, file, ...pattern], minutes, hasTests: true }
}

function escapeRegExp(text: string): string {
  return text.replaceAll('.', '[.]')
}
