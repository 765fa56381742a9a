import type { MetricTotal, NodeDisk } from '@airlock/contract'
import type { MonitorOverview } from '../monitor/overview.ts'
import { family, type Sample } from './prometheus.ts'

/** What sandboxes use and what watching them costs, as Prometheus text. Bounded: tenants and agents beyond the first are one line. */
export function monitorText({
  rounds,
  alerts,
  tenants,
  agents,
  disk,
}: MonitorOverview & { readonly disk: NodeDisk | null }): readonly string[] {
  return [
    ...GAUGES.flatMap((gauge) => [
      ...usage(`airlock_tenant_${gauge.name}`, gauge, tenants),
      ...usage(`airlock_agent_${gauge.name}`, gauge, agents),
    ]),
    ...(disk ? diskText(disk) : []),
    ...family({
      name: 'airlock_alerts_total',
      type: 'counter',
      help: 'Alerts since the start, by resource and level.',
      samples: alerts.map(({ resource, level, count }) => ({ labels: { resource, level }, value: count })),
    }),
    ...family({
      name: 'airlock_monitor_rounds_failed_total',
      type: 'counter',
      help: 'Rounds in which sandboxes could not be looked at.',
      samples: [{ value: rounds.failed }],
    }),
    ...family({
      name: 'airlock_monitor_round_duration_seconds',
      type: 'histogram',
      help: 'What it took to look at all sandboxes once.',
      samples: [
        ...rounds.buckets.map(([le, value]) => ({ suffix: '_bucket', labels: { le: String(le) }, value })),
        { suffix: '_bucket', labels: { le: '+Inf' }, value: rounds.done },
        { suffix: '_sum', value: rounds.seconds },
        { suffix: '_count', value: rounds.done },
      ],
    }),
  ]
}

function diskText({ freeBytes, reserveBytes }: NodeDisk): readonly string[] {
  const gauge = (name: string, help: string, value: number) =>
    family({ name, type: 'gauge', help, samples: [{ value }] })
  return [
    ...gauge('airlock_host_disk_free_bytes', 'Free on the file system of the state directory.', freeBytes),
    ...gauge('airlock_host_disk_reserve_bytes', 'What of that is to stay free.', reserveBytes),
  ]
}

interface Gauge {
  readonly name: string
  readonly help: string
  readonly of: (total: MetricTotal) => readonly Sample[]
}

const GAUGES: readonly Gauge[] = [
  {
    name: 'sampled_sandboxes',
    help: 'Living sandboxes that were looked at.',
    of: ({ sandboxes }) => [{ value: sandboxes }],
  },
  { name: 'cpus', help: 'Processors in use; 1 is one of them.', of: ({ cpuPercent }) => [{ value: cpuPercent / 100 }] },
  { name: 'memory_bytes', help: 'Memory in use.', of: ({ memoryBytes }) => [{ value: memoryBytes }] },
  { name: 'pids', help: 'Processes and threads.', of: ({ pids }) => [{ value: pids }] },
  { name: 'disk_bytes', help: 'Disk in use.', of: ({ diskBytes }) => [{ value: diskBytes }] },
  {
    name: 'alerts',
    help: 'Thresholds that sandboxes are beyond now.',
    of: ({ alerts }) => [
      { labels: { level: 'warning' }, value: alerts.warning },
      { labels: { level: 'critical' }, value: alerts.critical },
    ],
  },
]

function usage(
  name: string,
  { help, of }: Gauge,
  rows: readonly { readonly tenant: string; readonly agent?: string; readonly total: MetricTotal }[],
): readonly string[] {
  const samples = rows.flatMap(({ total, ...whose }) =>
    of(total).map(({ labels, value }) => ({ labels: { ...whose, ...labels }, value })),
  )
  return family({ name, type: 'gauge', help, samples })
}
