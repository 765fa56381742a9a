import { type Limits, limits, type MetricSample } from '@airlock/contract'
import { ISOLATION } from '../../testing/scripted-data-plane.ts'
import type { StoredSandbox } from '../../store/sandboxes.ts'

const MIB = 1024 * 1024

interface AskedRow {
  readonly createdAt?: number
  readonly limits?: Partial<Limits>
  readonly state?: StoredSandbox['state']
}

/** A sandbox that runs. */
export function aRow(asked: AskedRow = {}): StoredSandbox {
  const { createdAt = 0, state = 'active' } = asked
  const plain = { memoryBytes: 512 * MIB, cpus: 2, pids: 256, diskBytes: 1024 * MIB }
  return {
    id: 'sbx_1',
    tenant: 'default',
    agent: 'default',
    generation: 1,
    name: null,
    node: 'here',
    bootId: 'boot-1',
    template: 'base',
    image: null,
    state,
    labels: {},
    limits: limits.parse({ ...plain, ...asked.limits }),
    mounts: [],
    doors: ['control'],
    models: [],
    modelLimits: { calls: null, tokens: null, dollars: null, concurrentCalls: 16 },
    ttlMs: 1,
    idleMs: 1,
    onIdle: 'terminate',
    maxPausedMs: 1,
    pausedAt: null,
    pausedBy: null,
    createdAt,
    lastActiveAt: createdAt,
    expiresAt: createdAt,
    endsAt: createdAt,
    endedAt: null,
    endReason: null,
    error: null,
    isolation: ISOLATION,
    actor: 'key:test',
    recorded: false,
  }
}

/** What a sample says beside the usual. */
export type SaidSample = Partial<Omit<MetricSample, 'ofLimit'>> & {
  readonly ofLimit?: Partial<MetricSample['ofLimit']>
}

/** A sample of a sandbox that does nothing. */
export function aSample({ ofLimit, ...said }: SaidSample = {}): MetricSample {
  return {
    at: new Date().toISOString(),
    cpuPercent: 0,
    cpuMs: 0,
    throttledMs: 0,
    memoryBytes: 0,
    swapBytes: 0,
    pids: 1,
    diskBytes: 0,
    inodes: 0,
    readBytes: 0,
    writtenBytes: 0,
    oomKills: 0,
    pidsRefused: 0,
    pressure: null,
    ...said,
    ofLimit: { memory: 0, pids: 0, disk: 0, inodes: 0, ...ofLimit },
  }
}
