import type { Alert, MetricTotal } from '@airlock/contract'
import type { Seen } from './monitor.ts'

export const NOTHING_USED: MetricTotal = {
  sandboxes: 0,
  cpuPercent: 0,
  memoryBytes: 0,
  pids: 0,
  diskBytes: 0,
  alerts: { warning: 0, critical: 0 },
}

/** What they use together; what cannot be told adds nothing. */
export function totalOf(all: readonly Seen[], alertsOf: (sandbox: string) => readonly Alert[]): MetricTotal {
  return all.map((seen) => ofOne(seen, alertsOf(seen.row.id))).reduce(addTotals, NOTHING_USED)
}

export function addTotals(a: MetricTotal, b: MetricTotal): MetricTotal {
  return {
    sandboxes: a.sandboxes + b.sandboxes,
    // Hundredths add up to more decimals than anybody said.
    cpuPercent: Math.round((a.cpuPercent + b.cpuPercent) * 100) / 100,
    memoryBytes: a.memoryBytes + b.memoryBytes,
    pids: a.pids + b.pids,
    diskBytes: a.diskBytes + b.diskBytes,
    alerts: {
      warning: a.alerts.warning + b.alerts.warning,
      critical: a.alerts.critical + b.alerts.critical,
    },
  }
}

function ofOne({ sample }: Seen, alerts: readonly Alert[]): MetricTotal {
  return {
    sandboxes: 1,
    cpuPercent: sample.cpuPercent ?? 0,
    memoryBytes: sample.memoryBytes ?? 0,
    pids: sample.pids ?? 0,
    diskBytes: sample.diskBytes ?? 0,
    alerts: {
      warning: alerts.filter(({ level }) => level === 'warning').length,
      critical: alerts.filter(({ level }) => level === 'critical').length,
    },
  }
}
