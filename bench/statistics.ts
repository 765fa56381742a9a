/** What is said of a set of samples. */
export interface Summary {
  readonly count: number
  readonly p50: number
  readonly p95: number
  /** Absent in results of older versions. */
  readonly p99?: number
  readonly min: number
}

/** Preconditions: at least one sample. */
export function summarize(samples: readonly number[]): Summary {
  return {
    count: samples.length,
    p50: round(quantile(samples, 0.5)),
    p95: round(quantile(samples, 0.95)),
    p99: round(quantile(samples, 0.99)),
    min: round(Math.min(...samples)),
  }
}

/** The value below which that share of the samples lies, between two samples by the distance to each. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? Number.NaN
  return below + (above - below) * (at - Math.floor(at))
}

/** Three digits are all that a measurement of ours is worth. */
export function round(value: number): number {
  return value === 0 ? 0 : Number(value.toPrecision(Math.abs(value) >= 1000 ? 4 : 3))
}
