import type { MetricEvent, SandboxMetrics } from '@airlock/sdk/browser'
import { useEffect, useState } from 'preact/hooks'
import { useSession } from '../session.ts'
import { bytes, percent } from '../text/format.ts'
import { Chart, type Sample } from './chart.tsx'

/** The axis grows with what there is to show. */
const SPAN_MS = { least: 2 * 60_000, most: 15 * 60_000 }
const MAX_SAMPLES = 400
const RETRY_MS = 3_000

interface Series {
  readonly cpu: readonly Sample[]
  readonly memory: readonly Sample[]
  readonly processes: readonly Sample[]
}

const NOTHING: Series = { cpu: [], memory: [], processes: [] }

/** What a sandbox uses: the last quarter of an hour, then each new sample. */
export function Use({ id }: { readonly id: string }) {
  const { client } = useSession()
  const [series, setSeries] = useState(NOTHING)
  const [limits, setLimits] = useState<SandboxMetrics['limits']>()
  useEffect(() => {
    const gone = new AbortController()
    const { signal } = gone
    const follow = async (): Promise<void> => {
      const before = await client.metrics.sandbox(id, { signal })
      setLimits(before.limits)
      setSeries(historyOf(before))
      for await (const event of client.metrics.follow(id, { signal })) setSeries((now) => withEvent(now, event))
    }
    let timer: number | undefined
    const again = (): void => {
      if (!signal.aborted) timer = window.setTimeout(() => void follow().catch(again), RETRY_MS)
    }
    follow().catch(again)
    return () => {
      gone.abort()
      clearTimeout(timer)
    }
  }, [id])
  const first = series.memory[0]?.at ?? 0
  const spanMs = Math.min(SPAN_MS.most, Math.max(SPAN_MS.least, (series.memory.at(-1)?.at ?? 0) - first))
  const cpus = (limits?.cpus ?? 1) * 100
  return (
    <section class="charts" aria-label="What it uses">
      <Chart title="Processors" samples={series.cpu} limit={cpus} show={percent} spanMs={spanMs} />
      <Chart title="Memory" samples={series.memory} limit={limits?.memoryBytes ?? 1} show={bytes} spanMs={spanMs} />
      <Chart title="Processes" samples={series.processes} limit={limits?.pids ?? 1} show={whole} spanMs={spanMs} />
    </section>
  )
}

function historyOf({ history }: SandboxMetrics): Series {
  const pick = (value: (point: SandboxMetrics['history'][number]) => number | null): readonly Sample[] =>
    history.flatMap((point) => sampleOf(point.at, value(point)))
  return {
    cpu: pick(({ cpuPercent }) => cpuPercent),
    memory: pick(({ memoryBytes }) => memoryBytes),
    processes: pick(({ pids }) => pids),
  }
}

function withEvent(series: Series, event: MetricEvent): Series {
  if (event.event !== 'sample') return series
  const { at, cpuPercent, memoryBytes, pids } = event.sample
  return {
    cpu: appended(series.cpu, sampleOf(at, cpuPercent)),
    memory: appended(series.memory, sampleOf(at, memoryBytes)),
    processes: appended(series.processes, sampleOf(at, pids)),
  }
}

function appended(samples: readonly Sample[], added: readonly Sample[]): readonly Sample[] {
  const from = samples.at(-1)?.at ?? 0
  return [...samples, ...added.filter(({ at }) => at > from)].slice(-MAX_SAMPLES)
}

function sampleOf(at: string, value: number | null): readonly Sample[] {
  return value === null ? [] : [{ at: Date.parse(at), value }]
}

function whole(value: number): string {
  return String(Math.round(value))
}
