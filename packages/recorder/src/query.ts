import { stat } from 'node:fs/promises'
import type { AuditQuery, AuditRecord } from '@airlock/contract'
import type { Chain } from './chain.ts'
import { listSegments, readBackward } from './segments.ts'
import { parseStored } from './stored-line.ts'

/** One page must fit one line of the protocol. */
const MAX_PAGE_BYTES = 512 * 1024
/** So that no filter makes one call read a whole chain: a page may hold less than `limit` and still not be the last. */
const MAX_SCANNED = 50_000

/** The newest records that match, newest first. */
export async function queryChain(
  dir: string,
  { end }: Chain['snapshot'],
  query: AuditQuery,
): Promise<{ readonly records: readonly AuditRecord[]; readonly nextCursor: string | null }> {
  const page = new Page(query)
  for (const segment of end ? (await listSegments(dir)).toReversed() : []) {
    if (!end || segment.firstSeq > end.segment.firstSeq || segment.firstSeq >= page.before) continue
    const size = segment.path === end.segment.path ? end.size : (await stat(segment.path)).size
    for await (const line of readBackward(segment.path, size)) {
      const next = page.add(line)
      if (next !== 'more') return { records: page.records, nextCursor: next === 'full' ? page.cursor : null }
    }
  }
  return { records: page.records, nextCursor: null }
}

class Page {
  /** Only records older than this one. */
  readonly before: number
  readonly records: AuditRecord[] = []
  readonly #query: AuditQuery
  #last: number
  #bytes = 0
  #scanned = 0

  constructor(query: AuditQuery) {
    this.#query = query
    this.before = query.cursor === undefined ? Infinity : Number(query.cursor)
    this.#last = this.before
  }

  get cursor(): string {
    return String(this.#last)
  }

  /** `full`: the line is left for the next page. `end`: no line that is older can match. */
  add(line: string): 'more' | 'full' | 'end' {
    const record = this.#parse(line)
    if (!record || record.seq >= this.before) return 'more'
    if (this.#query.since !== undefined && isBefore(record.ts, this.#query.since)) return 'end'
    if (this.records.length === this.#query.limit || this.#scanned === MAX_SCANNED) return 'full'
    if (matches(record, this.#query)) {
      if (this.#bytes > 0 && this.#bytes + line.length > MAX_PAGE_BYTES) return 'full'
      this.#bytes += line.length
      this.records.push(record)
    }
    this.#scanned += 1
    this.#last = record.seq
    return 'more'
  }

  /** Heads are no records. A damaged line is none either: `export` and its verifier are for that. */
  #parse(line: string): AuditRecord | undefined {
    const stored = parseStored(line)
    return stored?.type === 'record' ? stored.record : undefined
  }
}

function matches(record: AuditRecord, query: AuditQuery): boolean {
  return (
    (query.agent === undefined || record.agent === query.agent) &&
    (query.sandbox === undefined || record.sandbox === query.sandbox) &&
    (query.point === undefined || record.point === query.point) &&
    (query.status === undefined || record.status === query.status) &&
    (query.until === undefined || !isBefore(query.until, record.ts))
  )
}

function isBefore(a: string, b: string): boolean {
  return Date.parse(a) < Date.parse(b)
}
