import type { SandboxState } from '@airlock/contract'
import { performance } from 'node:perf_hooks'
import { monitorText } from './monitor-text.ts'
import { family, type Sample } from './prometheus.ts'

const BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60]

interface Requests {
  readonly route: string
  readonly status: string
  count: number
}

interface Series {
  count: number
  sumS: number
  readonly buckets: number[]
}

/** Counts of HTTP requests, rendered with those of the process and the sandboxes as Prometheus text. */
export class Metrics {
  /** Bounded: keys are names of routes and status codes, both closed lists. */
  readonly #requests = new Map<string, Requests>()
  readonly #durations = new Map<string, Series>()

  observe(request: { readonly route: string; readonly status: number; readonly durationMs: number }): void {
    const { route } = request
    const status = String(request.status)
    const requests = this.#requests.get(`${route} ${status}`) ?? { route, status, count: 0 }
    requests.count++
    this.#requests.set(`${route} ${status}`, requests)
    const seconds = request.durationMs / 1000
    const series = this.#durations.get(route) ?? { count: 0, sumS: 0, buckets: BUCKETS_S.map(() => 0) }
    series.count++
    series.sumS += seconds
    BUCKETS_S.forEach((bound, i) => {
      if (seconds <= bound) series.buckets[i] = (series.buckets[i] ?? 0) + 1
    })
    this.#durations.set(route, series)
  }

  render(sandboxes: Readonly<Record<SandboxState, number>>, monitor: Parameters<typeof monitorText>[0]): string {
    return [
      ...family({
        name: 'airlock_sandboxes',
        type: 'gauge',
        help: 'Sandboxes by state.',
        samples: Object.entries(sandboxes).map(([state, value]) => ({ labels: { state }, value })),
      }),
      ...monitorText(monitor),
      ...family({
        name: 'airlock_http_requests_total',
        type: 'counter',
        help: 'HTTP requests by route and status.',
        samples: [...this.#requests.values()].map(({ route, status, count }) => ({
          labels: { route, status },
          value: count,
        })),
      }),
      ...family({
        name: 'airlock_http_request_duration_seconds',
        type: 'histogram',
        help: 'Time until the answer ended.',
        samples: [...this.#durations].flatMap(([route, series]) => histogram(route, series)),
      }),
      ...processText(),
      '',
    ].join('\n')
  }
}

function histogram(route: string, series: Series): readonly Sample[] {
  return [
    ...BUCKETS_S.map((bound, i) => ({
      suffix: '_bucket',
      labels: { route, le: String(bound) },
      value: series.buckets[i] ?? 0,
    })),
    { suffix: '_bucket', labels: { route, le: '+Inf' }, value: series.count },
    { suffix: '_sum', labels: { route }, value: series.sumS },
    { suffix: '_count', labels: { route }, value: series.count },
  ]
}

function processText(): readonly string[] {
  const cpu = process.cpuUsage()
  const one = (value: number): readonly Sample[] => [{ value }]
  return [
    ...family({
      name: 'process_cpu_seconds_total',
      type: 'counter',
      help: 'User and system CPU time.',
      samples: one((cpu.user + cpu.system) / 1e6),
    }),
    ...family({
      name: 'process_resident_memory_bytes',
      type: 'gauge',
      help: 'Resident memory.',
      samples: one(process.memoryUsage.rss()),
    }),
    ...family({
      name: 'process_start_time_seconds',
      type: 'gauge',
      help: 'When the process started.',
      samples: one(performance.timeOrigin / 1000),
    }),
    ...family({
      name: 'nodejs_eventloop_utilization',
      type: 'gauge',
      help: 'Share of its life that the event loop was busy.',
      samples: one(performance.eventLoopUtilization().utilization),
    }),
  ]
}
