import { type FileHandle, open } from 'node:fs/promises'
import type { RecordFilter } from '@airlock/audit'
import type { AuditRecord } from '@airlock/contract'
import { type Archive, ifGone } from '../chain/archive.ts'
import type { Chain } from '../chain/chain.ts'
import { readExactly, readForward, type Segment } from '../chain/segments.ts'
import { parseStored } from '../chain/stored-line.ts'
import { matches } from './tally.ts'

const PROBE_BYTES = 64 * 1024
const NEWLINE = 0x0a
/** The longest a search looks on for the begin of a line, in probes. */
const MAX_PROBES = 32

/** Reads a chain from some record on, oldest first. It keeps its place and nothing else. */
export class ForwardReader {
  readonly #archive: Archive
  readonly #chain: Chain
  readonly #filter: RecordFilter
  #seq: number
  /** Where the next line is; undefined when that must be looked for. */
  #at: { readonly segment: Segment; offset: number } | undefined

  constructor(
    of: { readonly archive: Archive; readonly chain: Chain },
    from: { readonly filter: RecordFilter; readonly after: number },
  ) {
    this.#archive = of.archive
    this.#chain = of.chain
    this.#filter = from.filter
    this.#seq = from.after
  }

  /** Everything up to here was read, or was known not to match. */
  get seq(): number {
    return this.#seq
  }

  /** Goes on after what is gone, and says whether anything was. */
  skipDropped(): boolean {
    const { seq } = this.#archive.start
    if (this.#seq >= seq) return false
    this.#seq = seq
    this.#at = undefined
    return true
  }

  /** What matches, up to what is acknowledged now. Yields undefined now and then, for whoever counts. */
  async *read(): AsyncGenerator<AuditRecord | undefined> {
    const { snapshot } = this.#chain
    const { end } = snapshot
    if (!end || snapshot.position.seq <= this.#seq) return
    // At the end already: nothing needs to be looked for.
    if (this.#at?.segment.path === end.segment.path) return yield* this.#readSegment(end.segment, end.size)
    for await (const { segment, size, tally, isSealed } of this.#archive.shelves(this.#chain, 'oldest')) {
      const { range } = tally
      if (!range || range.lastSeq <= this.#seq) continue
      if (isSealed && !tally.mayMatch(this.#filter)) {
        this.#seq = range.lastSeq
        yield undefined
      } else yield* this.#readSegment(segment, size)
    }
  }

  /** A segment that was dropped before it was opened is left for `skipDropped`. */
  async *#readSegment(segment: Segment, size: number): AsyncGenerator<AuditRecord | undefined> {
    if (this.#at?.segment.path !== segment.path) {
      const offset = await offsetAfter(segment, size, this.#seq).catch(ifGone)
      if (offset === undefined) return
      this.#at = { segment, offset }
    }
    if (this.#at.offset < size) yield* this.#readLines(this.#at, size)
  }

  async *#readLines(
    at: { readonly segment: Segment; offset: number },
    size: number,
  ): AsyncGenerator<AuditRecord | undefined> {
    try {
      for await (const line of readForward(at.segment.path, size, at.offset)) {
        at.offset += Buffer.byteLength(line) + 1
        const record = this.#take(line)
        if (record) yield matches(record, this.#filter) ? record : undefined
      }
    } catch (error) {
      ifGone(error)
    }
  }

  /** Undefined for a head, a line that is damaged, and what was read before. */
  #take(line: string): AuditRecord | undefined {
    const stored = parseStored(line)
    if (stored?.type !== 'record' || stored.record.seq <= this.#seq) return undefined
    this.#seq = stored.record.seq
    return stored.record
  }
}

/** Where to begin to read for what comes after `seq`: not far before it. Lines are in the order of their seq. */
async function offsetAfter(segment: Segment, size: number, seq: number): Promise<number> {
  if (seq < segment.firstSeq) return 0
  const file = await open(segment.path, 'r')
  try {
    let low = 0
    let high = size
    while (high - low > PROBE_BYTES) {
      const middle = Math.floor((low + high) / 2)
      const found = await lineAfter(file, middle, high)
      if (!found || found.seq > seq) high = middle
      else low = found.offset
    }
    return low
  } finally {
    await file.close()
  }
}

/** The first line that begins at or after `from`, if it is whole before `to` and says its seq. */
async function lineAfter(
  file: FileHandle,
  from: number,
  to: number,
): Promise<{ readonly offset: number; readonly seq: number } | undefined> {
  let bytes: Buffer = Buffer.alloc(0)
  for (let probes = 0; probes < MAX_PROBES && from + bytes.length < to; probes++) {
    const length = Math.min(PROBE_BYTES, to - from - bytes.length)
    bytes = Buffer.concat([bytes, await readExactly(file, from + bytes.length, length)])
    const start = bytes.indexOf(NEWLINE) + 1
    const end = start === 0 ? -1 : bytes.indexOf(NEWLINE, start)
    if (end < 0) continue
    const stored = parseStored(bytes.toString('utf8', start, end))
    if (!stored) return undefined
    return { offset: from + start, seq: stored.type === 'record' ? stored.record.seq : stored.head.seq }
  }
  return undefined
}
