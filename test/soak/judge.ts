import type { Counts, Idle, ProcessSample } from './inventory.ts'
import { PROCESSES, type ProcessName } from './server.ts'

/** One line of the result. */
export interface Row {
  readonly what: string
  readonly before: number | null
  readonly after: number | null
  /** What was allowed for, in words; empty where it must be the same. */
  readonly allowed: string
  readonly verdict: 'same' | 'within' | 'leak'
}

/**
 * Of all samples of a process at the same idle state, after its garbage was collected, the median slope is taken: what it adds
 * up to from the first to the last may be this much at most. The heap is exact; PSS has what the collector keeps for later.
 */
const MEMORY = {
  heap: { name: 'heap', floorMb: 4, share: 0.05 },
  pss: { name: 'memory (PSS)', floorMb: 16, share: 0.2 },
} as const
/** Connections are kept for the next request, as many as there were requests at once: at an idle moment more or fewer. */
const DESCRIPTORS = 12

const KEPT: ReadonlySet<string> = new Set(['idle: unix sockets'])

/** Nothing may be more than it was. */
export function judgeCounts(title: string, before: Counts, after: Counts): readonly Row[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names.map((name) => judged(`${title}: ${name}`, before[name] ?? 0, after[name] ?? 0))
}

/** The first and the last of several looks at a server that has nothing to do. */
export function judgeIdle(samples: readonly Idle[]): readonly Row[] {
  const rows = judgeCounts('idle', samples[0]?.counts ?? {}, samples.at(-1)?.counts ?? {})
  return rows.map((row) => (KEPT.has(row.what) ? judged(row.what, row.before ?? 0, row.after ?? 0, DESCRIPTORS) : row))
}

/** Samples of one life of each process, at the same idle state, oldest first. */
export function judgeProcesses(samples: readonly Idle[]): readonly Row[] {
  return PROCESSES.flatMap((name) => {
    const life = lastLife(samples, name)
    const [first] = life
    const last = life.at(-1)
    if (!first || !last || life.length < 2) return [missing(name)]
    return [
      judged(`${name}: descriptors`, first.descriptors, last.descriptors, DESCRIPTORS),
      judged(`${name}: sockets`, first.sockets, last.sockets, DESCRIPTORS),
      judged(`${name}: zombies`, first.zombies, last.zombies),
      judgeMemory(name, life, 'heap'),
      judgeMemory(name, life, 'pss'),
    ]
  })
}

/** Of processes that lived on while others died: the life whose descriptors grew the most. */
export function judgeSurvivors(samples: readonly Idle[]): readonly Row[] {
  return PROCESSES.flatMap((name) => {
    const lives = livesOf(samples, name).filter((life) => life.length > 1)
    const worst = lives.toSorted((a, b) => growth(b) - growth(a))[0]
    if (!worst) return []
    const [first, last] = [worst[0]?.descriptors ?? 0, worst.at(-1)?.descriptors ?? 0]
    return [judged(`${name}, while others died: descriptors`, first, last, DESCRIPTORS)]
  })
}

/** The median of the slopes between all pairs: one outlier does not move it. Per sample. */
export function medianSlope(values: readonly number[]): number {
  const slopes = values.flatMap((a, i) => values.slice(i + 1).map((b, distance) => (b - a) / (distance + 1)))
  const sorted = slopes.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2
}

function judgeMemory(process: ProcessName, life: readonly ProcessSample[], of: keyof typeof MEMORY): Row {
  const { name, floorMb, share } = MEMORY[of]
  const values = life.map(({ pssKb, heapKb }) => (of === 'heap' ? (heapKb ?? Number.NaN) : pssKb) / 1024)
  const [before = 0] = values
  const after = values.at(-1) ?? 0
  const grown = medianSlope(values) * (values.length - 1)
  const most = floorMb + share * before
  const isLeak = grown > most || !Number.isFinite(grown)
  const words = `slope ${signed(grown)} MB over ${values.length} samples, at most ${signed(most)}`
  return {
    what: `${process}: ${name}, MB`,
    before: tenths(before),
    after: tenths(after),
    allowed: words,
    verdict: isLeak ? 'leak' : 'within',
  }
}

function judged(what: string, before: number, after: number, spare = 0): Row {
  const allowed = spare === 0 ? '' : `at most ${spare} more`
  if (Number.isNaN(before) || Number.isNaN(after)) return { what, before, after, allowed, verdict: 'leak' }
  const verdict = after > before + spare ? 'leak' : after === before ? 'same' : 'within'
  return { what, before, after, allowed, verdict }
}

/** What could not be compared is not in order. */
function missing(name: ProcessName): Row {
  return { what: `${name}: two samples of one life`, before: null, after: null, allowed: '', verdict: 'leak' }
}

function lastLife(samples: readonly Idle[], name: ProcessName): readonly ProcessSample[] {
  return livesOf(samples, name).at(-1) ?? []
}

function livesOf(samples: readonly Idle[], name: ProcessName): readonly (readonly ProcessSample[])[] {
  const lives = new Map<number, ProcessSample[]>()
  for (const sample of samples.flatMap(({ processes }) => processes[name] ?? []))
    lives.set(sample.pid, [...(lives.get(sample.pid) ?? []), sample])
  return [...lives.values()]
}

function growth(life: readonly ProcessSample[]): number {
  return (life.at(-1)?.descriptors ?? 0) - (life[0]?.descriptors ?? 0)
}

function signed(value: number): string {
  return `${value < 0 ? '' : '+'}${tenths(value)}`
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10
}
