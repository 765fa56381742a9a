import { unlink } from 'node:fs/promises'
import { type ChainPosition, GENESIS } from '@airlock/audit'
import type { DroppedHead } from '@airlock/contract'
import type { Log } from '@airlock/std'
import type { Chain } from './chain.ts'
import { DroppedFile } from './dropped-file.ts'
import type { ChainPlace } from './tail.ts'
import { type Outline, SegmentIndexes } from './segment-index.ts'
import { isCode, listSegments, type Segment } from './segments.ts'
import type { Tally } from '../reading/tally.ts'

/** A segment and what is known of it. */
export interface Shelf {
  readonly segment: Segment
  readonly size: number
  readonly tally: Tally
  /** Nothing is written to it any more. */
  readonly isSealed: boolean
}

/** What the background found. */
export interface Verification {
  readonly state: 'pending' | 'good' | 'broken'
  readonly verifiedTo: number
  readonly at: number | null
  readonly broken: { readonly at: number; readonly reason: string } | null
}

/** A chain with its past: the segments that are sealed, what is known of them, and what is gone. */
export class Archive {
  readonly place: ChainPlace
  readonly #indexes: SegmentIndexes
  readonly #dropped: DroppedFile
  verification: Verification = { state: 'pending', verifiedTo: 0, at: null, broken: null }

  private constructor(place: ChainPlace, parts: { readonly dropped: DroppedFile; readonly log: Log }) {
    this.place = place
    this.#dropped = parts.dropped
    this.#indexes = new SegmentIndexes(parts.log)
  }

  /** Finishes what a crash left of a drop: what is stated as dropped is gone. */
  static async open(place: ChainPlace, log: Log): Promise<Archive> {
    const archive = new Archive(place, { dropped: await DroppedFile.open(place), log })
    // Tried again with the next drop; until then what is stated as dropped is not shown.
    await archive.removeDropped().catch((error: unknown) => {
      log.warn('dropped evidence could not be removed', { tenant: place.tenant, error })
    })
    return archive
  }

  get dropped(): DroppedHead | undefined {
    return this.#dropped.current?.head
  }

  /** Where the records that are kept begin: the last one before them. */
  get start(): ChainPosition {
    return this.dropped ?? { seq: 0, hash: GENESIS }
  }

  /** The statement of a drop that the chain has no record of yet. */
  get unrecorded(): DroppedHead | undefined {
    const { current } = this.#dropped
    return current && !current.recorded ? current.head : undefined
  }

  /** All that is kept, oldest first, up to what is acknowledged; and the statement that it begins after. */
  async kept({ end }: Chain['snapshot']): Promise<{
    readonly dropped: DroppedHead | undefined
    readonly segments: readonly Segment[]
  }> {
    const found = end ? await listSegments(this.place.dir) : []
    // Nothing is awaited from here on: both are of the same moment.
    const kept = withoutDropped(found, this.start.seq)
    const segments = kept.filter(({ firstSeq }) => firstSeq <= (end?.segment.firstSeq ?? 0))
    return { dropped: this.dropped, segments }
  }

  /** Each segment that is kept, with what is in it. One that was dropped meanwhile is left out. */
  async *shelves(chain: Chain, order: 'oldest' | 'newest'): AsyncGenerator<Shelf> {
    const { snapshot, tally } = chain
    const { end } = snapshot
    const { segments } = await this.kept(snapshot)
    for (const segment of order === 'oldest' ? segments : segments.toReversed()) {
      if (end && segment.path === end.segment.path) yield { segment, size: end.size, tally, isSealed: false }
      else {
        const index = await this.#indexes.of(segment).catch(ifGone)
        if (index) yield { segment, size: index.bytes, tally: index.tally, isSealed: true }
      }
    }
  }

  /** The sealed segments, oldest first, each with its last record; then what the last one, that is written to, holds. */
  async outlines({ snapshot }: Chain): Promise<{
    readonly sealed: readonly (Outline & { readonly lastSeq: number; readonly next: Segment })[]
    readonly openBytes: number
  }> {
    const { segments } = await this.kept(snapshot)
    const sealed = []
    for (const [i, segment] of segments.entries()) {
      const next = segments[i + 1]
      if (next) sealed.push({ ...(await this.#indexes.outline(segment)), lastSeq: next.firstSeq - 1, next })
    }
    return { sealed, openBytes: snapshot.end?.size ?? 0 }
  }

  /** Keeps what was counted of a segment, and makes room for the statement that one day drops it. */
  async seal(segment: Segment, tally: Tally): Promise<void> {
    await this.#dropped.prepare()
    await this.#indexes.seal(segment, tally)
  }

  /** First the statement, durable; then what it says. */
  async drop(head: DroppedHead): Promise<void> {
    await this.#dropped.write({ head, recorded: false })
    await this.removeDropped()
  }

  async setRecorded(head: DroppedHead): Promise<void> {
    await this.#dropped.write({ head, recorded: true })
  }

  /** Oldest first, so that what is left never has a hole. */
  async removeDropped(): Promise<void> {
    const found = await listSegments(this.place.dir)
    const kept = new Set(withoutDropped(found, this.start.seq))
    for (const segment of found) {
      if (kept.has(segment)) return
      await unlink(segment.path)
      await this.#indexes.forget(segment)
    }
  }
}

/** A segment ends where the next one begins. The last one is never dropped. */
function withoutDropped(segments: readonly Segment[], seq: number): readonly Segment[] {
  return segments.filter((_, i) => (segments[i + 1]?.firstSeq ?? Infinity) - 1 > seq)
}

export function ifGone(error: unknown): undefined {
  if (!isCode(error, 'ENOENT')) throw error
}
