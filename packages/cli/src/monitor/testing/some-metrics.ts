import type { Alert, MetricPoint, MetricSample, SandboxNow, TenantMetrics } from '@airlock/sdk'

const MIB = 1024 ** 2

const LIMITS = {
  memoryBytes: 512 * MIB,
  cpus: 1,
  pids: 256,
  diskBytes: 1024 * MIB,
  inodes: 65_536,
  openFiles: 1024,
  cpuSeconds: null,
}

/** For tests only: a sandbox with a processor, 512 MiB, 256 processes and 1 GiB, of which it uses a little. */
export function someSandbox(number: number, changes: Partial<SandboxNow> = {}): SandboxNow {
  return {
    sandbox: `sbx_${String(number).padStart(26, '0')}`,
    name: null,
    agent: 'default',
    state: 'active',
    limits: LIMITS,
    now: someSample(),
    alerts: [],
    raised: { warning: 0, critical: 0 },
    ...changes,
  }
}

export function someSample(changes: Partial<MetricSample> = {}): MetricSample {
  return {
    at: '2026-01-01T00:00:00.000Z',
    cpuPercent: 25,
    cpuMs: 1_000,
    throttledMs: 0,
    memoryBytes: 64 * MIB,
    swapBytes: 0,
    pids: 3,
    diskBytes: 10 * MIB,
    inodes: 20,
    readBytes: 0,
    writtenBytes: 0,
    oomKills: 0,
    pidsRefused: 0,
    ofLimit: { memory: 12.5, pids: 1.2, disk: 1, inodes: 0 },
    pressure: null,
    ...changes,
  }
}

export function someAlert(resource: Alert['resource'], level: Alert['level']): Alert {
  const [threshold, percent] = level === 'critical' ? [95, 97] : [80, 85]
  const sandbox = `sbx_${'0'.repeat(26)}`
  return { sandbox, agent: 'default', resource, level, percent, threshold, since: '2026-01-01T00:00:00.000Z' }
}

export function someTenant(sandboxes: readonly SandboxNow[], truncated = false): TenantMetrics {
  const sum = (amount: (sample: MetricSample) => number | null): number =>
    sandboxes.reduce((all, { now }) => all + (now === null ? 0 : (amount(now) ?? 0)), 0)
  const alerts = sandboxes.flatMap((one) => one.alerts)
  const critical = alerts.filter(({ level }) => level === 'critical').length
  return {
    tenant: 'default',
    total: {
      sandboxes: sandboxes.length,
      cpuPercent: sum(({ cpuPercent }) => cpuPercent),
      memoryBytes: sum(({ memoryBytes }) => memoryBytes),
      pids: sum(({ pids }) => pids),
      diskBytes: sum(({ diskBytes }) => diskBytes),
      alerts: { critical, warning: alerts.length - critical },
    },
    sandboxes: [...sandboxes],
    truncated,
  }
}

/** A point of five seconds, so many after the first. */
export function somePoint(index: number, changes: Partial<MetricPoint> = {}): MetricPoint {
  return {
    at: new Date(Date.parse('2026-01-01T00:00:00Z') + index * 5_000).toISOString(),
    spanMs: 5_000,
    samples: 1,
    cpuPercent: 50,
    cpuPercentMax: 100,
    memoryBytes: 64 * MIB,
    memoryBytesMax: 128 * MIB,
    pids: 3,
    pidsMax: 4,
    diskBytes: 10 * MIB,
    throttledMs: 0,
    readBytes: 0,
    writtenBytes: 0,
    oomKills: 0,
    ...changes,
  }
}
