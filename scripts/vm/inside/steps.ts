export interface Step {
  readonly name: string
  readonly argv: readonly string[]
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

/** Where a kill meets control groups and mounts. The others are the same on every host. */
const CRASHES = ['create.launched', 'create.guest-attached', 'command.running', 'terminate.frozen']

/** What runs in the machine. Emulated, every step takes ten times as long: of the kill -9 table only what differs by host. */
export function steps(fast: boolean): readonly Step[] {
  const crashes = fast ? [] : ['--testNamePattern', CRASHES.map((name) => name.replaceAll('.', '[.]')).join('|')]
  return [
    { name: 'machine', argv: ['sh', '-c', MACHINE], minutes: 1 },
    { name: 'doctor', argv: DOCTOR, minutes: 6 },
    { name: 'doctor in a group', argv: [...IN_A_GROUP, ...DOCTOR], minutes: 6 },
    tests('service', ['test/vm/inside'], 20),
    tests('conformance', ['packages/data-plane/src/isolation/backends/oci'], 25),
    tests('walk', ['test/lifecycle/walk.test.ts'], 15),
    tests('kill -9', ['test/lifecycle/crash.test.ts', ...crashes], 25),
  ]
}

const MACHINE = `uname -r
systemctl --version | head -n 1
findmnt --noheadings --output FSTYPE,OPTIONS /sys/fs/cgroup
cat /sys/fs/cgroup/cgroup.controllers`

function tests(name: string, words: readonly string[], minutes: number): Step {
  const vitest = 'node node_modules/vitest/vitest.mjs run --config scripts/vm/inside/vitest.config.ts'.split(' ')
  return { name, argv: [...vitest, ...words], minutes, hasTests: true }
}
