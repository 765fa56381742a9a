import type { RecordFilter } from '@airlock/audit'
import type { AuditQuery, AuditRecord } from '@airlock/contract'
import { type Archive, ifGone, type Shelf } from '../chain/archive.ts'
import type { Chain } from '../chain/chain.ts'
import { readBackward } from '../chain/segments.ts'
import { parseStored } from '../chain/stored-line.ts'
import { isBefore, matches } from './tally.ts'

/** One page must fit one line of the protocol. */
const MAX_PAGE_BYTES = 512 * 1024
/** So that no filter makes one call read a whole chain: a page may hold less than `limit` and still not be the last. */
const MAX_SCANNED = 50_000

interface Asked {
  readonly filter: RecordFilter
  readonly limit: number
  /** Only records older than this one. */
  readonly before: number
}

/** The newest records that match, newest first. Segments in which nothing can match are not read. */
export async function queryChain(
  of: { readonly archive: Archive; readonly chain: Chain },
  asked: Asked,
): Promise<{ readonly records: readonly AuditRecord[]; readonly nextCursor: string | null }> {
  const page = new Page(asked)
  for await (const shelf of of.archive.shelves(of.chain, 'newest')) {
    if (shelf.segment.firstSeq >= asked.before) continue
    if (isBefore(shelf.tally.range?.lastTs, asked.filter.since)) continue
    if (shelf.isSealed && !shelf.tally.mayMatch(asked.filter)) continue
    const next = await fill(page, shelf)
    if (next === 'full') return { records: page.records, nextCursor: page.cursor }
  }
  return { records: page.records, nextCursor: null }
}

/** What a query of the API means. */
export function toAsked(query: AuditQuery): Asked {
  const { agent, sandbox, point, status, since, until, limit, cursor } = query
  const filter: RecordFilter = {
    ...(agent === undefined ? {} : { agents: [agent] }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(point === undefined ? {} : { points: [point] }),
    ...(status === undefined ? {} : { statuses: [status] }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  }
  return { filter, limit, before: cursor === undefined ? Infinity : Number(cursor) }
}

async function fill(page: Page, { segment, size, tally }: Shelf): Promise<'more' | 'full'> {
  try {
    for await (const line of readBackward(segment.path, size)) {
      const next = page.add(line)
      if (next === 'full') return next
      // Whatever is before it in this segment is too old as well. Not so in an older one, if the clock was ahead then.
      if (next === 'too old' && tally.isOrdered) return 'more'
    }
  } catch (error) {
    // Dropped while it was read: what is older is gone too.
    ifGone(error)
  }
  return 'more'
}

class Page {
  readonly records: AuditRecord[] = []
  readonly #asked: Asked
  #last: number
  #bytes = 0
  #scanned = 0

  constructor(asked: Asked) {
    this.#asked = asked
    this.#last = asked.before
  }

  get cursor(): string {
    return String(this.#last)
  }

  /** `full`: the line is left for the next page. */
  add(line: string): 'more' | 'full' | 'too old' {
    const { filter, limit, before } = this.#asked
    const record = recordOf(line)
    if (!record || record.seq >= before) return 'more'
    if (this.records.length === limit || this.#scanned === MAX_SCANNED) return 'full'
    if (isBefore(record.ts, filter.since)) {
      this.#scanned += 1
      this.#last = record.seq
      return 'too old'
    }
    if (matches(record, filter)) {
      if (this.#bytes > 0 && this.#bytes + line.length > MAX_PAGE_BYTES) return 'full'
      this.#bytes += line.length
      this.records.push(record)
    }
    this.#scanned += 1
    this.#last = record.seq
    return 'more'
  }
}

/** Heads are no records. A damaged line is none either: `export` and its verifier are for that. */
function recordOf(line: string): AuditRecord | undefined {
  const stored = parseStored(line)
  return stored?.type === 'record' ? stored.record : undefined
}
