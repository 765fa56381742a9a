import { id, type NewRecord } from '@airlock/contract'
import { type Clock, type Log, newId } from '@airlock/std'
import type { Acknowledged } from './acknowledged.ts'
import type { Outcome, RecorderLink } from './recorder-link.ts'
import { redactRecord } from './redact.ts'
import { sentRecord } from './sent-record.ts'
import type { NoteOptions } from './sink.ts'
import { Spill, type SpilledNote } from './spill.ts'

const MAX_NOTES = 10_000
const MAX_BYTES = 64 * 1024 * 1024
const MAX_SENT = 256
const MAX_LOSSES = 256
const LATE_MS = 1000
const ANSWER_MS = 10_000
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 5000
/** No second try makes the recorder take these, or should: of a flood it is enough to know how much it was. */
const REFUSED = new Set(['invalid_request', 'body_too_large', 'forbidden', 'evidence_full'])
/** Said of one tenant until somebody has seen to it: its notes are put aside, and hold up nobody who waits for the others. */
const PARKING = new Set(['evidence_broken'])
const PARKED_MS = 5000

interface Note extends SpilledNote {
  record: NewRecord
  readonly bytes: number
  /** Which one it is of all that this process had. */
  readonly order: number
  late: boolean
  isSent: boolean
  onSettled?: NoteOptions['onSettled']
}

export interface NoteQueueOptions {
  readonly link: RecorderLink
  readonly spillDir: string
  /** Hears what is in the chains, of the spill too. */
  readonly acknowledged: Acknowledged
  readonly clock: Clock
  readonly log: Log
  /** Delay before the first retry; it doubles with each. */
  readonly firstRetryMs?: number
  /** How long notes of a broken chain wait before one of them is tried. */
  readonly parkedMs?: number
}

/**
 * Notes on their way to the recorder: in memory and spilled to disk, sent until acknowledged, each with one `rid` for
 * all its life. When too many wait, the oldest make room, and one record per tenant counts them.
 */
export class NoteQueue {
  readonly #link: RecorderLink
  readonly #clock: Clock
  readonly #log: Log
  readonly #acknowledged: Acknowledged
  readonly #spill: Spill
  /** All that are not acknowledged, oldest first. */
  readonly #notes = new Map<string, Note>()
  #ready: Note[] = []
  /** To be sent again, with those of the same tenants that came after them: an end never overtakes its beginning. */
  #failed: Note[] = []
  readonly #holding = new Set<string>()
  #entered = 0
  /** By tenant. */
  readonly #parked = new Map<string, Set<Note>>()
  #parkedCount = 0
  #unparking: NodeJS.Timeout | undefined
  /** By tenant: the note that counts what was lost and is not on its way yet. */
  readonly #losses = new Map<string, Note>()
  #bytes = 0
  #sent = 0
  readonly #firstRetryMs: number
  readonly #parkedMs: number
  #retryMs: number
  #retry: NodeJS.Timeout | undefined
  #onEmpty: (() => void)[] = []

  constructor(options: NoteQueueOptions) {
    this.#link = options.link
    this.#clock = options.clock
    this.#log = options.log
    this.#firstRetryMs = options.firstRetryMs ?? FIRST_RETRY_MS
    this.#retryMs = this.#firstRetryMs
    this.#parkedMs = options.parkedMs ?? PARKED_MS
    this.#acknowledged = options.acknowledged
    this.#spill = new Spill(options.spillDir, options.log)
    for (const [tenant, rids] of this.#spill.acknowledged) for (const rid of rids) this.#acknowledged.add(tenant, rid)
    for (const note of this.#spill.found) this.#enter(this.#make(note, 'late'))
    this.#pump()
  }

  add(record: NewRecord, { rid = newId('rec'), onSettled }: NoteOptions = {}): void {
    const known = this.#notes.get(rid)
    // An earlier life noted it, and it is on its way.
    if (known) return void (known.onSettled = onSettled)
    const parsed = sentRecord.safeParse(redactRecord(record))
    if (!parsed.success) return this.#lose({ record, onSettled }, 'it is malformed')
    const note: Note = { ...this.#make({ rid, at: this.#clock.now(), record: parsed.data }), onSettled }
    this.#enter(note)
    this.#spill.add(note)
    while (this.#notes.size > MAX_NOTES || this.#bytes > MAX_BYTES) if (!this.#evict()) break
    this.#pump()
  }

  /** Waits for all but what is parked. */
  async flush(timeoutMs: number): Promise<void> {
    if (this.#isQuiet) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#onEmpty.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  close(): void {
    clearTimeout(this.#retry)
    clearTimeout(this.#unparking)
    this.#ready = []
    this.#spill.close()
  }

  #enter(note: Note): void {
    this.#notes.set(note.rid, note)
    this.#bytes += note.bytes
    this.#ready.push(note)
  }

  #pump(): void {
    while (this.#sent < MAX_SENT) {
      const note = this.#ready.shift()
      if (!note) return
      if (!this.#notes.has(note.rid)) continue
      if (this.#holding.has(note.record.tenant)) this.#failed.push(note)
      else void this.#send(note)
    }
  }

  async #send(note: Note): Promise<void> {
    this.#sent += 1
    note.isSent = true
    if (this.#losses.get(note.record.tenant) === note) this.#losses.delete(note.record.tenant)
    const outcome = await this.#link.request(() => this.#request(note), ANSWER_MS)
    this.#sent -= 1
    note.isSent = false
    this.#settle(note, outcome)
    this.#pump()
  }

  #request(note: Note): object {
    note.late ||= this.#clock.now() - note.at > LATE_MS
    const happenedAt = note.record.happenedAt ?? new Date(note.at).toISOString()
    const record = note.late ? { ...note.record, happenedAt } : note.record
    // Whatever becomes of this sending, the next one comes late.
    note.late = true
    return { op: 'append', rid: note.rid, patient: true, record }
  }

  #settle(note: Note, outcome: Outcome): void {
    const isRefused = outcome.type === 'error' && REFUSED.has(outcome.code)
    if (outcome.type === 'ok' || isRefused) {
      this.#remove(note)
      this.#retryMs = this.#firstRetryMs
      if (isRefused) this.#lose(note, outcome.message)
      else {
        this.#acknowledged.add(note.record.tenant, note.rid)
        note.onSettled?.('kept')
      }
      this.#unparkAll(note.record.tenant)
      return
    }
    if (outcome.type === 'error' && PARKING.has(outcome.code)) return this.#park(note)
    this.#failed.push(note)
    this.#holding.add(note.record.tenant)
    this.#retry ??= setTimeout(() => this.#sendAgain(), this.#retryMs)
  }

  #park(note: Note): void {
    const { tenant } = note.record
    const parked = this.#parked.get(tenant) ?? new Set()
    this.#parked.set(tenant, parked.add(note))
    this.#parkedCount += 1
    this.#unparking ??= setTimeout(() => this.#tryParked(), this.#parkedMs)
    this.#wakeIfQuiet()
  }

  /** One of each tenant: thousands would hold up whoever waits for the others. */
  #tryParked(): void {
    this.#unparking = undefined
    for (const parked of this.#parked.values()) {
      const [oldest] = [...parked].sort(byOrder)
      if (oldest && this.#unpark(oldest)) this.#ready.push(oldest)
    }
    if (this.#parkedCount > 0) this.#unparking = setTimeout(() => this.#tryParked(), this.#parkedMs)
    this.#pump()
  }

  /** The recorder takes records of this tenant again. */
  #unparkAll(tenant: string): void {
    const parked = this.#parked.get(tenant)
    if (!parked) return
    const all = [...parked].sort(byOrder)
    for (const note of all) this.#unpark(note)
    this.#ready = [...all, ...this.#ready]
  }

  #unpark(note: Note): boolean {
    const { tenant } = note.record
    const parked = this.#parked.get(tenant)
    if (!parked?.delete(note)) return false
    this.#parkedCount -= 1
    if (parked.size === 0) this.#parked.delete(tenant)
    return true
  }

  #sendAgain(): void {
    this.#retry = undefined
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS)
    this.#ready = [...this.#failed.sort(byOrder), ...this.#ready]
    this.#failed = []
    this.#holding.clear()
    this.#pump()
  }

  /** Removes the oldest that is not on its way. A note that counts losses is never lost itself. */
  #evict(): boolean {
    for (const note of this.#notes.values()) {
      if (note.isSent || note.record.point === 'audit.lost') continue
      this.#remove(note)
      this.#lose(note, 'too many wait for the recorder')
      return true
    }
    return false
  }

  #remove(note: Note): void {
    this.#notes.delete(note.rid)
    this.#unpark(note)
    this.#bytes -= note.bytes
    this.#spill.remove(note.rid, this.#notes)
    this.#wakeIfQuiet()
  }

  get #isQuiet(): boolean {
    return this.#notes.size === this.#parkedCount
  }

  #wakeIfQuiet(): void {
    if (!this.#isQuiet) return
    for (const wake of this.#onEmpty.splice(0)) wake()
  }

  #lose({ record, onSettled }: Pick<Note, 'record' | 'onSettled'>, why: string): void {
    onSettled?.('lost')
    this.#log.error('a note was lost', { point: record.point, tenant: record.tenant, why })
    if (record.point === 'audit.lost') return
    const isCounted = this.#losses.has(record.tenant) || this.#losses.size < MAX_LOSSES
    const tenant = isCounted && id.safeParse(record.tenant).success ? record.tenant : 'system'
    const before = this.#losses.get(tenant)
    if (before) before.record = lossRecord(tenant, lostBy(before.record) + 1)
    const note = before ?? this.#make({ rid: newId('rec'), at: this.#clock.now(), record: lossRecord(tenant, 1) })
    this.#spill.add(note)
    if (before) return
    this.#losses.set(tenant, note)
    this.#enter(note)
  }

  #make(note: SpilledNote, when?: 'late'): Note {
    const bytes = JSON.stringify(note.record).length
    return { ...note, order: this.#entered++, late: when === 'late', isSent: false, bytes }
  }
}

function byOrder(one: Note, other: Note): number {
  return one.order - other.order
}

function lossRecord(tenant: string, lost: number): NewRecord {
  return { tenant, actor: 'system', point: 'audit.lost', status: 'done', payload: { lost } }
}

function lostBy(record: NewRecord): number {
  const lost = record.payload?.['lost']
  return typeof lost === 'number' ? lost : 0
}
