import type { AuditStats, Point, StatusCounts } from '@airlock/contract'
import type { Archive, Shelf } from '../chain/archive.ts'
import type { Chain } from '../chain/chain.ts'
import { addCounts, noCounts } from './kind-tally.ts'
import type { RetentionRules } from '../chain/retention.ts'
import { byName } from './summary.ts'

interface Place {
  readonly archive: Archive
  readonly chain: Chain
}

/** How much there is of a chain, and how it is. */
export async function measure(place: Place, rules: RetentionRules): Promise<AuditStats> {
  const { archive, chain } = place
  const count = new Count()
  for await (const shelf of archive.shelves(chain, 'oldest')) count.add(shelf)
  return {
    ...count.result(),
    firstSeq: count.records === 0 ? 0 : archive.start.seq + 1,
    lastSeq: chain.snapshot.position.seq,
    perMinute: chain.growth.perMinute,
    verification: verificationOf(place),
    retention: { ...rules, dropped: archive.dropped ?? null },
  }
}

class Count {
  readonly #days = new Map<string, number>()
  readonly #points = new Map<Point, ReturnType<typeof noCounts>>()
  #bytes = 0
  #segments = 0
  #oldest: string | null = null
  #newest: string | null = null
  records = 0

  add({ size, tally }: Shelf): void {
    this.records += tally.records
    this.#bytes += size
    this.#segments += 1
    this.#oldest ??= tally.range?.firstTs ?? null
    this.#newest = tally.range?.lastTs ?? this.#newest
    for (const [day, { kinds }] of tally.days())
      for (const [point, { counts }] of kinds) {
        this.#days.set(day, (this.#days.get(day) ?? 0) + totalOf(counts))
        const known = this.#points.get(point) ?? noCounts()
        addCounts(known, counts)
        this.#points.set(point, known)
      }
  }

  result() {
    return {
      records: this.records,
      bytes: this.#bytes,
      segments: this.#segments,
      oldest: this.#oldest,
      newest: this.#newest,
      perDay: [...this.#days].sort(byName).map(([day, records]) => ({ day, records })),
      points: [...this.#points].sort(byName).map(([point, counts]) => ({ point, ...counts })),
    }
  }
}

/** A chain that may not be written to is broken, whatever the past of it is. */
function verificationOf({ archive, chain }: Place): AuditStats['verification'] {
  const { state, verifiedTo, at, broken } = archive.verification
  const when = at === null ? null : new Date(at).toISOString()
  if (chain.broken !== undefined) return { state: 'broken', verifiedTo, at: when, brokenAt: null, reason: chain.broken }
  return { state, verifiedTo, at: when, brokenAt: broken?.at ?? null, reason: broken?.reason ?? null }
}

function totalOf({ requested, done, failed, denied, unknown }: StatusCounts): number {
  return requested + done + failed + denied + unknown
}
