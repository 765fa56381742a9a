import { useId } from 'preact/hooks'

export interface Sample {
  readonly at: number
  readonly value: number
}

interface ChartProps {
  readonly title: string
  readonly samples: readonly Sample[]
  /** The limit, as a dashed line and the top of the scale. */
  readonly limit: number
  readonly show: (value: number) => string
  readonly spanMs: number
}

const WIDTH = 600
const HEIGHT = 120
const PAD = 6

/** One line over time. Its size is there before its samples are. */
export function Chart({ title, samples, limit, show, spanMs }: ChartProps) {
  const id = useId()
  const last = samples.at(-1)
  const end = last?.at ?? 0
  const shown = samples.filter(({ at }) => at > end - spanMs)
  const most = shown.reduce((sum, { value }) => Math.max(sum, value), 0)
  const top = niceTop(most, limit)
  const x = (at: number): number => WIDTH * (1 - (end - at) / spanMs)
  const y = (value: number): number => HEIGHT - PAD - (HEIGHT - 2 * PAD) * Math.min(1, value / top)
  const points = shown.map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
  const first = shown[0]
  return (
    <figure class="chart">
      <figcaption id={id}>
        <span>{title}</span>
        <b>{last ? show(last.value) : '–'}</b>
        <small>of {show(limit)}</small>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-labelledby={id}>
        <line class="grid" x1="0" x2={WIDTH} y1={HEIGHT - PAD} y2={HEIGHT - PAD} />
        <line class="grid" x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
        {top >= limit && <line class="limit" x1="0" x2={WIDTH} y1={y(limit)} y2={y(limit)} />}
        {first && points.length > 1 && (
          <>
            <path class="area" d={`M${x(first.at)},${HEIGHT - PAD} L${points.join(' L')} L${WIDTH},${HEIGHT - PAD}Z`} />
            <polyline class="line" points={points.join(' ')} />
          </>
        )}
      </svg>
      <p class="scale">
        <span>{Math.round(spanMs / 60_000)} min</span>
        <span>top {show(top)}</span>
        <span>now</span>
      </p>
    </figure>
  )
}

/** Small use stays visible: the scale grows in steps up to the limit. */
function niceTop(most: number, limit: number): number {
  const steps = [0.01, 0.05, 0.1, 0.25, 0.5, 1].map((share) => share * limit)
  return steps.find((step) => most <= step * 0.9) ?? Math.max(limit, most)
}
