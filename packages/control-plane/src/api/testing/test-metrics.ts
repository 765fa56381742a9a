import {
  DEFAULTS,
  limits,
  type MetricEvent,
  type MetricPoint,
  type MetricSample,
  type SandboxNow,
} from '@airlock/contract'
import type { MetricFeed } from '../../monitor/metrics.ts'
import { NOTHING_USED } from '../../monitor/totals.ts'

const AT = '2026-01-02T03:04:05.000Z'

const SAMPLE: MetricSample = {
  at: AT,
  cpuPercent: 50,
  cpuMs: 1000,
  throttledMs: 0,
  memoryBytes: 64 * 1024 * 1024,
  swapBytes: 0,
  pids: 3,
  diskBytes: 4096,
  inodes: 12,
  readBytes: 0,
  writtenBytes: 4096,
  oomKills: 0,
  pidsRefused: 0,
  ofLimit: { memory: 12.5, pids: 1.2, disk: 0, inodes: 0 },
  pressure: null,
}

const POINT: MetricPoint = {
  at: AT,
  spanMs: 60_000,
  samples: 12,
  cpuPercent: 40,
  cpuPercentMax: 80,
  memoryBytes: 1024,
  memoryBytesMax: 2048,
  pids: 2,
  pidsMax: 3,
  diskBytes: 4096,
  throttledMs: 0,
  readBytes: 0,
  writtenBytes: 4096,
  oomKills: 0,
}

function nowOf(sandbox: string): SandboxNow {
  const size = {
    memoryBytes: DEFAULTS.memoryBytes.default,
    cpus: DEFAULTS.cpus.default,
    pids: DEFAULTS.pids.default,
    diskBytes: DEFAULTS.diskBytes.default,
  }
  return {
    sandbox,
    name: null,
    agent: 'default',
    state: 'active',
    limits: limits.parse(size),
    now: SAMPLE,
    alerts: [],
    raised: { warning: 1, critical: 0 },
  }
}

const SANDBOX = `sbx_${'1'.repeat(26)}`
const TOTAL = { ...NOTHING_USED, sandboxes: 1, cpuPercent: 50, memoryBytes: 64 * 1024 * 1024, pids: 3, diskBytes: 4096 }

/** For tests of the edge, the SDK and the CLI only: one sandbox whose numbers do not change. */
export const TEST_METRICS: MetricFeed = {
  tenant: async () => ({ tenant: 'default', total: TOTAL, sandboxes: [nowOf(SANDBOX)], truncated: false }),
  sandbox: async (_caller, id) => ({ ...nowOf(id), history: [POINT] }),
  agent: async (_caller, agent) => ({
    agent,
    total: TOTAL,
    raised: { warning: 1, critical: 0 },
    sandboxes: [nowOf(SANDBOX)],
    history: [POINT],
  }),
  follow: async (_caller, sandbox) => followed(sandbox),
  overview: () => ({
    rounds: { done: 2, failed: 1, seconds: 0.03, buckets: [[0.01, 1]] },
    alerts: [{ resource: 'cpu', level: 'warning', count: 1 }],
    tenants: [{ tenant: 'default', total: TOTAL }],
    agents: [{ tenant: 'default', agent: 'default', total: TOTAL }],
    disk: { freeBytes: 3, takenBytes: 2, reserveBytes: 1 },
  }),
}

async function* followed(sandbox: string): AsyncGenerator<MetricEvent> {
  yield { event: 'sample', sandbox, sample: SAMPLE }
  yield { event: 'cleared', sandbox, resource: 'cpu', at: AT }
  yield { event: 'ended', sandbox }
}
