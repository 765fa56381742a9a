import type { MetricPoint, MetricSample } from '@airlock/contract'
import type { Tally } from '../store/metrics.ts'

/** A moment, and what was counted since the moment before. */
export interface Sampled {
  readonly at: number
  readonly tally: Tally
}

/** One sample. What grew is since the sample before: of a first one nobody can tell. */
export function toSampled(sample: MetricSample, before: MetricSample | undefined): Sampled {
  const at = Date.parse(sample.at)
  const countedMs = before ? Math.max(0, at - Date.parse(before.at)) : 0
  const grown = (field: 'cpuMs' | 'throttledMs' | 'readBytes' | 'writtenBytes' | 'oomKills'): number | null =>
    countedMs > 0 ? growth(sample[field], before?.[field] ?? null) : null
  const gauge = (value: number | null): number | null => (value === null ? null : Math.round(value))
  const [cpuMs, memory, pids] = [grown('cpuMs'), gauge(sample.memoryBytes), gauge(sample.pids)]
  const tally = {
    samples: 1,
    countedMs,
    cpuMs,
    cpuMax: cpuShare(cpuMs, countedMs),
    memorySum: memory,
    memoryMax: memory,
    pidsSum: pids,
    pidsMax: pids,
    diskSum: gauge(sample.diskBytes),
    throttledMs: grown('throttledMs'),
    readBytes: grown('readBytes'),
    writtenBytes: grown('writtenBytes'),
    oomKills: grown('oomKills'),
  }
  return { at, tally }
}

/** Of what was counted one after the other. */
export function addTallies(a: Tally, b: Tally): Tally {
  return {
    samples: a.samples + b.samples,
    countedMs: a.countedMs + b.countedMs,
    cpuMax: largest(a.cpuMax, b.cpuMax),
    memoryMax: largest(a.memoryMax, b.memoryMax),
    pidsMax: largest(a.pidsMax, b.pidsMax),
    ...counters(a, b),
    memorySum: gaugeOver('memorySum', a, b),
    pidsSum: gaugeOver('pidsSum', a, b),
    diskSum: gaugeOver('diskSum', a, b),
  }
}

/** Of what was counted at the same time, such as all sandboxes of an agent in one round. Nothing is null. */
export function joinSampled(all: readonly [Sampled, ...Sampled[]]): Sampled {
  const [first, ...others] = all
  return others.reduce((a, b) => {
    const countedMs = Math.max(a.tally.countedMs, b.tally.countedMs)
    const sums = { ...counters(a.tally, b.tally), ...gauges(a.tally, b.tally) }
    const tally = {
      samples: 1,
      countedMs,
      cpuMax: cpuShare(sums.cpuMs, countedMs),
      memoryMax: sums.memorySum,
      pidsMax: sums.pidsSum,
      ...sums,
    }
    return { at: Math.max(a.at, b.at), tally }
  }, first)
}

/** As callers see it. */
export function toPoint(tally: Tally, of: { readonly at: number; readonly spanMs: number }): MetricPoint {
  const { samples, countedMs } = tally
  const average = (total: number | null): number | null => (total === null ? null : Math.round(total / samples))
  return {
    at: new Date(of.at).toISOString(),
    spanMs: of.spanMs,
    samples,
    cpuPercent: percent(cpuShare(tally.cpuMs, countedMs)),
    cpuPercentMax: percent(tally.cpuMax),
    memoryBytes: average(tally.memorySum),
    memoryBytesMax: tally.memoryMax,
    pids: average(tally.pidsSum),
    pidsMax: tally.pidsMax,
    diskBytes: average(tally.diskSum),
    throttledMs: tally.throttledMs,
    readBytes: tally.readBytes,
    writtenBytes: tally.writtenBytes,
    oomKills: tally.oomKills,
  }
}

/** In percent of a processor, with two decimals; null where nothing grew that could be counted. */
export function cpuPercentOf(sample: Sampled): number | null {
  return percent(sample.tally.cpuMax)
}

type Counter = 'cpuMs' | 'throttledMs' | 'readBytes' | 'writtenBytes' | 'oomKills'
type Gauge = 'memorySum' | 'pidsSum' | 'diskSum'

function counters(a: Tally, b: Tally): Pick<Tally, Counter> {
  return {
    cpuMs: plus(a.cpuMs, b.cpuMs),
    throttledMs: plus(a.throttledMs, b.throttledMs),
    readBytes: plus(a.readBytes, b.readBytes),
    writtenBytes: plus(a.writtenBytes, b.writtenBytes),
    oomKills: plus(a.oomKills, b.oomKills),
  }
}

/** At the same time. */
function gauges(a: Tally, b: Tally): Pick<Tally, Gauge> {
  return {
    memorySum: plus(a.memorySum, b.memorySum),
    pidsSum: plus(a.pidsSum, b.pidsSum),
    diskSum: plus(a.diskSum, b.diskSum),
  }
}

/** One after the other. Samples that could not tell count as those beside them did on average. */
function gaugeOver(gauge: Gauge, a: Tally, b: Tally): number | null {
  const { [gauge]: first } = a
  const { [gauge]: second } = b
  const samples = a.samples + b.samples
  if (first === null) return second === null ? null : Math.round((second / b.samples) * samples)
  return second === null ? Math.round((first / a.samples) * samples) : first + second
}

/** What cannot be told adds nothing. */
function plus(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : a + b
}

function largest(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.max(a, b)
}

/** A counter that is behind itself began anew: what it lost is not known, and less than nothing is not used. */
function growth(now: number | null, before: number | null): number | null {
  return now === null || before === null ? null : Math.max(0, Math.round(now - before))
}

/** In hundredths of a percent. */
function cpuShare(cpuMs: number | null, countedMs: number): number | null {
  return cpuMs === null || countedMs === 0 ? null : Math.round((cpuMs / countedMs) * 10_000)
}

function percent(hundredths: number | null): number | null {
  return hundredths === null ? null : hundredths / 100
}
