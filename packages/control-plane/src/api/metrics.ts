import type { SandboxState } from '@airlock/contract'
import { performance } from 'node:perf_hooks'

const BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60]

interface Series {
  count: number
  sumS: number
  readonly buckets: number[]
}

/** Counts of HTTP requests, rendered with those of the process and the sandboxes as Prometheus text. */
export class Metrics {
  /** Bounded: keys are names of routes and status codes, both closed lists. */
  readonly #requests = new Map<string, number>()
  readonly #durations = new Map<string, Series>()

  observe(request: { readonly route: string; readonly status: number; readonly durationMs: number }): void {
    const labels = `route="${request.route}",status="${request.status}"`
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1)
    const seconds = request.durationMs / 1000
    const series = this.#durations.get(request.route) ?? { count: 0, sumS: 0, buckets: BUCKETS_S.map(() => 0) }
    series.count++
    series.sumS += seconds
    BUCKETS_S.forEach((bound, i) => {
      if (seconds <= bound) series.buckets[i] = (series.buckets[i] ?? 0) + 1
    })
    this.#durations.set(request.route, series)
  }

  render(sandboxes: Readonly<Record<SandboxState, number>>): string {
    const states = Object.entries(sandboxes).map(([state, count]) => `airlock_sandboxes{state="${state}"} ${count}`)
    const requests = [...this.#requests].map(([labels, count]) => `airlock_http_requests_total{${labels}} ${count}`)
    const durations = [...this.#durations].flatMap(([route, series]) => histogram(route, series))
    return [
      ...metric('airlock_sandboxes', 'gauge', 'Sandboxes by state.', states),
      ...metric('airlock_http_requests_total', 'counter', 'HTTP requests by route and status.', requests),
      ...metric('airlock_http_request_duration_seconds', 'histogram', 'Time until the answer ended.', durations),
      ...processMetrics(),
      '',
    ].join('\n')
  }
}

function histogram(route: string, series: Series): readonly string[] {
  const name = 'airlock_http_request_duration_seconds'
  return [
    ...BUCKETS_S.map((bound, i) => `${name}_bucket{route="${route}",le="${bound}"} ${series.buckets[i] ?? 0}`),
    `${name}_bucket{route="${route}",le="+Inf"} ${series.count}`,
    `${name}_sum{route="${route}"} ${series.sumS}`,
    `${name}_count{route="${route}"} ${series.count}`,
  ]
}

function processMetrics(): readonly string[] {
  const cpu = process.cpuUsage()
  const gauge = (name: string, help: string, value: number): readonly string[] =>
    metric(name, 'gauge', help, [`${name} ${value}`])
  return [
    ...metric('process_cpu_seconds_total', 'counter', 'User and system CPU time.', [
      `process_cpu_seconds_total ${(cpu.user + cpu.system) / 1e6}`,
    ]),
    ...gauge('process_resident_memory_bytes', 'Resident memory.', process.memoryUsage.rss()),
    ...gauge('process_start_time_seconds', 'When the process started.', performance.timeOrigin / 1000),
    ...gauge(
      'nodejs_eventloop_utilization',
      'Share of its life that the event loop was busy.',
      performance.eventLoopUtilization().utilization,
    ),
  ]
}

// oxlint-disable-next-line max-params -- a table reads best as columns
function metric(name: string, type: string, help: string, samples: readonly string[]): readonly string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples]
}
