import type { RuleInput } from './rule-input.ts'

/** Sizes far over any disk that a sandbox has: from 100 GB. */
const SIZES = [
  '[0-9]*[TPEtpe]',
  '[0-9]*[TPE]*B',
  '[0-9][0-9][0-9]*[Gg]',
  '[0-9][0-9][0-9]*G*B',
  '[0-9][0-9][0-9][0-9][0-9][0-9]*[Mm]',
  '[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]*',
]
const HUGE = ['', '-c', '-l', '-s', '--bytes=', '--length=', '--size='].flatMap((flag) =>
  SIZES.map((size) => `${flag}${size}`),
)

/** Blocks and how many of them, in either order. */
const HUGE_COPY = [
  ['[gG]', '{3}'],
  ['[mM]', '{6}'],
  ['[kK]', '{9}'],
]
  .flatMap(([unit = '', digits = '']) => [
    `bs=[0-9]+${unit}.* count=[0-9]${digits}`,
    `count=[0-9]${digits}.* bs=[0-9]+${unit}`,
  ])
  .concat('(bs|count)=[0-9]+[TPE]')
  .join('|')

export const EXHAUSTION: readonly RuleInput[] = [
  {
    id: 'fork-bomb',
    kind: 'command',
    effect: 'deny',
    risk: 'critical',
    reason: 'It starts copies of itself without end.',
    match: { traits: ['fork-bomb'] },
    examples: {
      match: [':(){ :|:& };:', 'f() { f & f & }; f'],
      notMatch: ['fact() { [ "$1" -le 1 ] || fact $(($1 - 1)); }; fact 5', 'lint() { npx eslint . | tail; }; lint'],
    },
  },
  {
    id: 'endless-spawn',
    kind: 'command',
    effect: 'ask',
    risk: 'high',
    reason: 'A loop without an end starts something every time and waits for nothing.',
    match: { traits: ['endless-spawn'] },
    examples: {
      match: ['while true; do sleep 1000 & done'],
      notMatch: ['for i in 1 2 3; do ./work & done; wait', 'while true; do ./work & sleep 1; done'],
    },
  },
  {
    id: 'endless-output',
    kind: 'command',
    effect: 'ask',
    risk: 'medium',
    reason: 'It writes until the disk is full.',
    match: { programs: ['yes'], writes: ['**', '!/dev/null', '!/dev/stderr'] },
    examples: { match: ['yes > /tmp/fill'], notMatch: ['yes | head -n 100', 'yes > /dev/null'] },
  },
  {
    id: 'endless-tee',
    kind: 'command',
    effect: 'ask',
    risk: 'medium',
    reason: 'It writes until the disk is full.',
    match: { programs: ['tee'], inputFrom: ['yes'] },
    examples: { match: ['yes | tee big > /dev/null'], notMatch: ['ls | tee x'] },
  },
  {
    id: 'endless-input',
    kind: 'command',
    effect: 'ask',
    risk: 'medium',
    reason: 'It reads what has no end.',
    match: { programs: ['cat', 'tail', 'tac', 'sort', 'cp', 'wc'], paths: ['/dev/zero', '/dev/full'] },
    examples: { match: ['cat /dev/zero > x', 'tail /dev/zero'], notMatch: ['head -c 10M /dev/zero > x', 'cat x'] },
  },
  {
    id: 'endless-copy',
    kind: 'command',
    effect: 'ask',
    risk: 'medium',
    reason: 'It writes until the disk is full.',
    match: {
      programs: ['dd'],
      paths: ['/dev/zero', '/dev/urandom', '/dev/random'],
      writes: ['**', '!/dev/null'],
      withoutArguments: ['count=*'],
    },
    examples: { match: ['dd if=/dev/zero of=/tmp/fill'], notMatch: ['dd if=/dev/zero of=img bs=1M count=10'] },
  },
  {
    id: 'endless-noise',
    kind: 'command',
    effect: 'ask',
    risk: 'medium',
    reason: 'It writes until the disk is full.',
    match: {
      programs: ['cat', 'tail', 'cp', 'pv', 'tr', 'base64', 'xxd', 'gzip'],
      paths: ['/dev/urandom', '/dev/random', '/dev/zero'],
      writes: ['**', '!/dev/null'],
    },
    examples: {
      match: ['cat /dev/urandom > x', 'base64 /dev/urandom > x', 'cp /dev/zero x'],
      notMatch: ['cat /dev/urandom | head -c 10 > x', 'cat x > y', 'head -c 32 /dev/urandom > key'],
    },
  },
  {
    id: 'huge-file',
    kind: 'command',
    effect: 'ask',
    risk: 'medium',
    reason: 'It reserves more than a disk has.',
    match: { programs: ['fallocate', 'truncate', 'mkfile'], arguments: HUGE },
    examples: {
      match: ['fallocate -l 10T x', 'truncate -s 500G x', 'fallocate -l1000000000000 x'],
      notMatch: ['fallocate -l 100M x', 'truncate -s 10G x'],
    },
  },
  {
    id: 'huge-output',
    kind: 'command',
    effect: 'ask',
    risk: 'medium',
    reason: 'It writes more than a disk has.',
    match: { programs: ['head', 'tail', 'openssl'], arguments: HUGE, withoutFlags: ['-n', '--lines'] },
    examples: {
      match: ['head -c 10T /dev/zero > x', 'head --bytes=900G /dev/urandom > x', 'openssl rand 999999999999 > x'],
      notMatch: ['head -c 10M /dev/zero > x', 'head -n 1000000000000 x', 'head -c 4096 x'],
    },
  },
  {
    id: 'huge-copy',
    kind: 'command',
    effect: 'ask',
    risk: 'medium',
    reason: 'It writes more than a disk has.',
    match: { programs: ['dd'], pattern: HUGE_COPY },
    examples: {
      match: [
        'dd if=/dev/zero of=x bs=1G count=1000',
        'dd count=1000000 if=/dev/zero of=x bs=1M',
        'dd if=a of=b bs=1T',
      ],
      notMatch: [
        'dd if=/dev/zero of=x bs=1M count=1024',
        'dd if=/dev/zero of=x bs=512 count=1000000',
        'dd if=a of=b bs=1G',
      ],
    },
  },
  {
    id: 'stress',
    kind: 'command',
    effect: 'ask',
    risk: 'medium',
    reason: 'It uses up what the machine has, on purpose.',
    match: {
      programs: ['stress', 'stress-ng', 'memtester', 'cpuburn', 'mprime'],
      withoutArguments: ['--version', '--help', '-h'],
    },
    examples: { match: ['stress-ng --vm 64 --fork 1000'], notMatch: ['stress-ng --version', 'npm run stress'] },
  },
]
