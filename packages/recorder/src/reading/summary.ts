import type { AgentSummary, Point, StatusCounts } from '@airlock/contract'
import type { Archive } from '../chain/archive.ts'
import type { Chain } from '../chain/chain.ts'
import { addCounts, KindTally, noCounts } from './kind-tally.ts'
import { isBefore } from './tally.ts'

interface Place {
  readonly archive: Archive
  readonly chain: Chain
}

/** What an agent did on whole days, both included. Made of what is known of the segments: no record is read. */
export async function summarize(
  place: Place,
  of: { readonly agent: string; readonly from: string; readonly to: string },
): Promise<AgentSummary> {
  const { agent, from, to } = of
  const kinds = new Map<Point, KindTally>()
  const days = new Map(daysBetween(from, to).map((day) => [day, { counts: noCounts(), sandboxes: new Set<string>() }]))
  for await (const { tally } of place.archive.shelves(place.chain, 'oldest'))
    for (const [day, found] of tally.daysOf(agent)) {
      const trend = days.get(day)
      if (!trend) continue
      for (const sandbox of found.sandboxes) trend.sandboxes.add(sandbox)
      for (const [point, kind] of found.kinds) {
        addCounts(trend.counts, kind.counts)
        kindOf(kinds, point).merge(kind)
      }
    }
  const total = noCounts()
  for (const { counts } of kinds.values()) addCounts(total, counts)
  return {
    agent,
    from,
    to,
    complete: !isDroppedSince(place.archive, from),
    sandboxes: new Set([...days.values()].flatMap(({ sandboxes }) => [...sandboxes])).size,
    total: withRates(total),
    kinds: [...kinds].sort(byName).map(([point, kind]) => describeKind(point, kind)),
    trend: [...days].map(([day, { counts, sandboxes }]) => ({ day, ...counts, sandboxes: sandboxes.size })),
  }
}

function describeKind(point: Point, kind: KindTally): AgentSummary['kinds'][number] {
  const { durations } = kind
  const { count, max } = durations
  const times = { count, p50: durations.quantile(0.5), p95: durations.quantile(0.95), max }
  return { point, ...withRates(kind.counts), durationMs: count === 0 ? null : times, usage: kind.usage }
}

function withRates(counts: StatusCounts): AgentSummary['total'] {
  const { done, failed, denied, unknown } = counts
  const ended = done + failed + unknown
  return {
    ...counts,
    failureRate: ended === 0 ? null : (failed + unknown) / ended,
    denialRate: ended + denied === 0 ? null : denied / (ended + denied),
  }
}

/** Whether records of that day, or of a later one, are gone. */
function isDroppedSince({ dropped }: Archive, day: string): boolean {
  return dropped !== undefined && !isBefore(dropped.dropped.newest, `${day}T00:00:00.000Z`)
}

function kindOf(kinds: Map<Point, KindTally>, point: Point): KindTally {
  const known = kinds.get(point) ?? new KindTally()
  kinds.set(point, known)
  return known
}

function daysBetween(from: string, to: string): string[] {
  const days: string[] = []
  for (let at = Date.parse(from); at <= Date.parse(to); at += 24 * 3600 * 1000)
    days.push(new Date(at).toISOString().slice(0, 10))
  return days
}

export function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}
