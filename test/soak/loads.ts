import type { CommandResult } from '@airlock/sdk'

const MIB = 1024 * 1024

/** Small, so that loads reach them and many fit on the machine. */
const LIMITS = { memoryBytes: 96 * MIB, cpus: 0.5, pids: 64, diskBytes: 24 * MIB }
/** For one process inside, gVisor may need tens of threads outside, and the same limit counts those. */
const STRICT_PIDS = 2048

export function limitsOf(tier: 'standard' | 'strict'): typeof LIMITS {
  return tier === 'strict' ? { ...LIMITS, pids: STRICT_PIDS } : LIMITS
}

/** What code in a sandbox does, and what must come of it when nothing disturbs it. */
export interface Load {
  /** How often it is chosen. */
  readonly weight: number
  /** Where it is done: what goes beyond the limits may end a strict sandbox, and once it has, nothing more is shown. */
  readonly tiers: readonly ('standard' | 'strict')[]
  readonly shell: string
  readonly timeoutMs?: number
  /** Started, and left to itself. */
  readonly background?: true
  /** Its caller goes away after so long. */
  readonly leftAfterMs?: number
  /** Rules of the monitor may end a sandbox for it, for these reasons. */
  readonly endsBy?: readonly ('out_of_memory' | 'pids_exhausted' | 'disk_exhausted' | 'guest_lost')[]
  /** Undefined, or what is wrong. */
  readonly check: (result: CommandResult) => string | undefined
}

const BOTH = ['standard', 'strict'] as const

const says = (wanted: string) => (result: CommandResult) =>
  result.exitCode === 0 && result.stdout === wanted ? undefined : `it answered ${brief(result)}`

const isAnything = () => undefined

/** Forks until it is refused, then cleans up after itself. */
const FORK_UNTIL_REFUSED = `
import os, signal
children = []
try:
    while len(children) < 1000:
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)
except BlockingIOError:
    print('refused')
for child in children:
    os.kill(child, 9)
for child in children:
    os.waitpid(child, 0)
`

const LOADS = {
  echo: { weight: 10, tiers: BOTH, shell: 'echo hello', check: says('hello\n') },
  burn: {
    weight: 8,
    tiers: BOTH,
    shell: 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo $i',
    check: says('60000\n'),
  },
  write: {
    weight: 8,
    tiers: BOTH,
    shell: 'dd if=/dev/urandom of=big bs=1M count=6 2>/dev/null && sync; rm big && echo written',
    check: says('written\n'),
  },
  files: {
    weight: 5,
    tiers: BOTH,
    shell:
      'mkdir -p many && i=0; while [ $i -lt 200 ]; do echo $i > many/$i; i=$((i+1)); done; rm -r many && echo removed',
    check: says('removed\n'),
  },
  fill: {
    weight: 5,
    tiers: ['standard'],
    shell: 'dd if=/dev/zero of=full bs=1M count=100 2>/dev/null; echo $?; rm full',
    endsBy: ['disk_exhausted'],
    check: says('1\n'),
  },
  forks: {
    weight: 8,
    tiers: BOTH,
    shell: 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.2 & done; wait; echo forked',
    check: says('forked\n'),
  },
  'fork-until-refused': {
    weight: 5,
    tiers: ['standard'],
    shell: `python3 -c "${FORK_UNTIL_REFUSED}"`,
    endsBy: ['pids_exhausted'],
    check: says('refused\n'),
  },
  'memory-until-killed': {
    weight: 6,
    tiers: ['standard'],
    shell: `exec python3 -c "b'x' * (400 << 20)"`,
    endsBy: ['out_of_memory'],
    check: (result) =>
      result.signal === 'SIGKILL' || result.exitCode === 137 ? undefined : `it answered ${brief(result)}`,
  },
  'strict-memory': {
    weight: 2,
    tiers: ['strict'],
    shell: `exec python3 -c "b'x' * (900 << 20)"`,
    endsBy: ['out_of_memory', 'guest_lost'],
    check: isAnything,
  },
  timeout: {
    weight: 5,
    tiers: BOTH,
    shell: 'trap "" TERM; sleep 60',
    timeoutMs: 500,
    check: (result) => (result.timedOut ? undefined : `it answered ${brief(result)}`),
  },
  background: { weight: 6, tiers: BOTH, shell: 'sleep 3600', background: true, check: isAnything },
  orphan: {
    weight: 6,
    tiers: BOTH,
    shell: `setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 0.3; done' >/dev/null 2>&1 & echo left`,
    check: says('left\n'),
  },
  output: {
    weight: 4,
    tiers: BOTH,
    shell: 'head -c 3000000 /dev/zero | tr "\\0" a',
    check: (result) =>
      result.truncated && result.stdout.length === 2 * MIB ? undefined : `it answered ${result.stdout.length} bytes`,
  },
  abandon: { weight: 4, tiers: BOTH, shell: 'sleep 2; echo late', leftAfterMs: 150, check: isAnything },
} as const satisfies Record<string, Load>
export type LoadName = keyof typeof LOADS
export const LOAD_NAMES = Object.keys(LOADS).filter((name): name is LoadName => Object.hasOwn(LOADS, name))

export function loadNamed(name: LoadName): Load {
  return LOADS[name]
}

function brief({ state, exitCode, signal, timedOut, stdout, stderr }: CommandResult): string {
  const said = { stdout: stdout.slice(0, 200), stderr: stderr.slice(0, 200) }
  return JSON.stringify({ state, exitCode, signal, timedOut, ...said })
}
