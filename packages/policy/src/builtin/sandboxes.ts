import { RUNTIME_SOCKETS } from './places.ts'
import type { RuleInput } from './rule-input.ts'

const GIB = 1024 ** 3

export const SANDBOXES: readonly RuleInput[] = [
  {
    id: 'sensitive-mounts',
    kind: 'mount',
    effect: 'deny',
    risk: 'critical',
    reason: 'This part of the host is not for sandboxes.',
    match: {
      paths: [
        '/',
        '/boot/**',
        '/dev/**',
        '/etc/**',
        '/home',
        '/proc/**',
        '/root',
        '/run/**',
        '/sys/**',
        '/var',
        '/var/run/**',
        '/var/lib',
        '/var/lib/airlock/**',
        '/var/lib/docker/**',
        '/var/lib/containerd/**',
        '/var/lib/kubelet/**',
        '/var/log/**',
        ...RUNTIME_SOCKETS,
        '**/docker.sock',
        '**/.ssh/**',
        '**/.aws/**',
        '**/.gnupg/**',
        '**/.kube/**',
        '**/.config/gcloud/**',
      ],
    },
    examples: {
      match: ['/', '/etc', '/home/me/.ssh', '/var/run/docker.sock'],
      notMatch: ['/srv/data', '/home/me/project', '/tmp/x'],
    },
  },
  {
    id: 'writable-mounts',
    kind: 'mount',
    effect: 'allow',
    risk: 'medium',
    note: true,
    reason: 'What happens there happens on the host.',
    match: { modes: ['rw'] },
    examples: {
      match: [{ kind: 'mount', path: '/srv/data', mode: 'rw' }],
      notMatch: [{ kind: 'mount', path: '/srv/data', mode: 'ro' }],
    },
  },
  {
    id: 'large-sandboxes',
    kind: 'quota',
    effect: 'allow',
    risk: 'medium',
    note: true,
    reason: 'It takes much of the machine: more than 4 processors or 4 GiB.',
    match: { over: { cpus: 4, memoryBytes: 4 * GIB } },
  },
]
