import type { NewRecord, Point } from '@airlock/contract'
import { type Log, newId } from '@airlock/std'
import { redactRecord } from './redact.ts'
import type { NoteOptions, StagedSink, Written } from './sink.ts'
import { Spill, type SpilledNote } from './spill.ts'

/** More at once than there are requests at once: what is beyond has lost its end already. */
const MAX_OPEN = 10_000

interface OpenDeedsOptions {
  /** A directory of its own. */
  readonly dir: string
  readonly log: Log
  /** Points whose ends are told from rows after a crash. */
  readonly toldFromRows: ReadonlySet<Point>
}

/**
 * Keeps on disk what was recorded as `requested` and has no end in the evidence yet. A process that dies in between leaves
 * it behind, and its next life records that the outcome is `unknown`.
 */
export class OpenDeeds implements StagedSink {
  readonly #to: StagedSink
  readonly #options: OpenDeedsOptions
  readonly #spill: Spill
  readonly #open = new Map<string, SpilledNote>()

  constructor(to: StagedSink, options: OpenDeedsOptions) {
    this.#to = to
    this.#options = options
    // One that is done must not be found again: it would be called unknown.
    this.#spill = new Spill(options.dir, options.log, 1)
  }

  /** Tells of what an earlier life left, once, but not of what `isToldElsewhere`. */
  async tellLeft(isToldElsewhere: (record: NewRecord) => Promise<boolean>): Promise<void> {
    for (const left of this.#spill.found) {
      if (!(await isToldElsewhere(left.record))) this.#to.note(left.record)
      this.#spill.remove(left.rid, this.#open)
    }
  }

  async require(record: NewRecord): Promise<void> {
    this.#begin(record)
    try {
      await this.#to.require(record)
    } catch (error) {
      // Without its record nothing was done.
      this.#end(record)
      throw error
    }
    if (record.status !== 'requested') this.#end(record)
  }

  async requireWritten(record: NewRecord): Promise<Written> {
    this.#begin(record)
    try {
      return await this.#to.requireWritten(record)
    } catch (error) {
      this.#end(record)
      throw error
    }
  }

  note(record: NewRecord, options?: NoteOptions): void {
    this.#begin(record)
    this.#to.note(record, options)
    if (record.status !== 'requested') this.#end(record)
  }

  async flush(timeoutMs: number): Promise<void> {
    await this.#to.flush(timeoutMs)
  }

  /** On disk before the record is sent: it may be written, and this process dead, before the answer comes. */
  #begin(record: NewRecord): void {
    if (record.status !== 'requested' || this.#options.toldFromRows.has(record.point)) return
    if (this.#open.size >= MAX_OPEN) return
    const note = { rid: newId('rec'), at: Date.now(), record: redactRecord({ ...record, status: 'unknown' }) }
    this.#open.set(keyOf(record), note)
    this.#spill.add(note)
  }

  #end(record: NewRecord): void {
    const key = keyOf(record)
    const begun = this.#open.get(key)
    if (!begun || !this.#open.delete(key)) return
    this.#spill.remove(begun.rid, this.#open)
  }
}

/** What the records of one deed have in common. */
function keyOf({ point, tenant, agent, sandbox, payload }: NewRecord): string {
  return JSON.stringify([point, tenant, agent, sandbox, payload?.['requestId'] ?? null])
}
