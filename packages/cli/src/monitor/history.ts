import type { MetricPoint } from '@airlock/sdk'
import { highest } from './sparkline.ts'
import type { Shown } from './use.ts'

/** More than a week of quarters of an hour, a day of minutes, or a quarter of an hour of seconds. */
const MOST = 2_000

/** The most in each stretch of time, all as long as most points are, from the first to the last; null where nothing is known. */
export function onTimeAxis(history: readonly MetricPoint[], resource: Shown): readonly (number | null)[] {
  const points = history.slice(-MOST)
  const [first] = points
  if (!first) return []
  const step = usualSpan(points)
  const indexOf = (time: number): number => Math.floor((time - Date.parse(first.at)) / step)
  const values: (number | null)[] = []
  for (const point of points) {
    const at = Date.parse(point.at)
    const until = Math.min(MOST - 1, indexOf(at + Math.max(0, point.spanMs - 1)))
    while (values.length <= until) values.push(null)
    for (let i = Math.max(0, indexOf(at)); i <= until; i++)
      values[i] = highest([values[i] ?? null, mostOf(point, resource)])
  }
  return values
}

/** The middle one: a first point may have no length, and one after a gap a long one. */
function usualSpan(points: readonly MetricPoint[]): number {
  const spans = points.map(({ spanMs }) => spanMs).toSorted((a, b) => a - b)
  return Math.max(1, spans[Math.floor(spans.length / 2)] ?? 1)
}

/** The most in a stretch of time, where that is kept. */
function mostOf(point: MetricPoint, resource: Shown): number | null {
  switch (resource) {
    case 'cpu':
      return point.cpuPercentMax ?? point.cpuPercent
    case 'memory':
      return point.memoryBytesMax ?? point.memoryBytes
    case 'pids':
      return point.pidsMax ?? point.pids
    case 'disk':
      return point.diskBytes
  }
}
