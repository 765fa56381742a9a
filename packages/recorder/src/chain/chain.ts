import { canonical, type ChainPosition, GENESIS, redactRecord, signBroken, signHead } from '@airlock/audit'
import {
  AirlockError,
  type AuditRecord,
  type BrokenHead,
  type Failpoint,
  newRecord,
  type NewRecord,
  type SignedHead,
} from '@airlock/contract'
import { type Clock, type Log, newId } from '@airlock/std'
import type { z } from 'zod'
import { ChainFile, type OpenFile } from './chain-file.ts'
import type { RecorderKeys } from '../keys.ts'
import { cutDoubtful, KNOWN_RIDS, type Recovered } from './recover.ts'
import { Growth } from './growth.ts'
import { Jumps } from './jumps.ts'
import type { Segment } from './segments.ts'
import { sealRecord } from './stored-line.ts'
import { type ChainTail, type Doubtful, verifyTail } from './tail.ts'
import { Tally } from '../reading/tally.ts'

const MAX_BATCH = 1024
const MAX_QUEUE = 16 * 1024
const SEGMENT_BYTES = 16 * 1024 * 1024
const HEAD_RECORDS = 1000
const HEAD_MS = 1000
/** What nobody waits for goes to the disk with the next record, or after this time: one sync serves all. */
const COMPANY_MS = 3

export interface ChainOptions {
  readonly dir: string
  readonly tenant: string
  readonly keys: RecorderKeys
  readonly clock: Clock
  /** Milliseconds that went by, whatever is done to the clock. */
  readonly elapsed?: () => number
  readonly log: Log
  readonly failpoint: Failpoint
  /** What an earlier life left; a new chain without it. */
  readonly recovered?: Recovered
  readonly segmentBytes?: number
  readonly openFile?: OpenFile
  /** A segment is not written to any more. */
  readonly onSealed?: (segment: Segment, tally: Tally) => void
}

export interface Entry {
  /** Chosen by the sender: the same again is the same record. */
  readonly rid: string
  readonly process: string
  readonly record: z.infer<typeof newRecord>
  /** Called once it is in its file and not yet on disk, if ever. */
  readonly onWritten?: (() => void) | undefined
  /** Nobody waits for it. */
  readonly patient?: boolean
}

interface Waiting extends Entry {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Where a chain is, and what the next record needs to know of those before it. */
interface Cursor {
  readonly position: ChainPosition
  readonly ts: number
  readonly unsigned: number
}

/** The lines of a batch, and where the chain is with them. */
interface Draft {
  position: ChainPosition
  ts: number
  unsigned: number
  head: SignedHead | undefined
  readonly lines: string[]
  readonly records: AuditRecord[]
}

interface Owed extends Entry {
  readonly at: number
}

/** Written together. */
interface Unsynced {
  readonly draft: Draft
  readonly owed: readonly Owed[]
  readonly batch: readonly Waiting[]
}

/**
 * The chain of one tenant. Whatever waits is written together, in the order in which it came, then synced, then acknowledged;
 * when either fails, all that was not acknowledged is refused and the chain is as it was. At most a second passes until a
 * signed head covers a record.
 */
export class Chain {
  readonly #options: ChainOptions
  #file: ChainFile
  #rids: Set<string>
  readonly #pending = new Map<string, Promise<void>>()
  #queue: Waiting[] = []
  /** Our own records, which nobody waits for: they go first, as soon as something can be written. */
  #owed: Owed[] = []
  /** What is acknowledged, and what is in the file. */
  #durable: Cursor
  #written: Cursor
  /** What lies between the two. */
  #unsynced: Unsynced[] = []
  #company: NodeJS.Timeout | undefined
  #broken: string | undefined
  #doubtful: Doubtful | undefined
  #isHeadDue = false
  #isSealDue = false
  /** Said once, until it works again. */
  #isFailing = false
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  /** There is more to do, since the round that runs began. */
  #isAsked = false
  /** Cuts off the doubtful end. */
  #cutting: Promise<void> | undefined
  /** Of the segment that is written to. */
  #tally: Tally
  readonly growth: Growth
  readonly #jumps: Jumps

  constructor(options: ChainOptions) {
    const { recovered } = options
    this.#options = options
    this.#file = new ChainFile(options.dir, { ...options, ...recovered?.end })
    this.#rids = new Set(recovered?.rids)
    const { position = { seq: 0, hash: GENESIS }, ts = 0, unsigned = 0 } = recovered ?? {}
    this.#durable = { position, ts, unsigned }
    this.#written = this.#durable
    this.#broken = recovered?.broken
    this.#doubtful = recovered?.doubtful
    this.#tally = recovered?.tally ?? new Tally()
    this.growth = new Growth(options.clock)
    this.#jumps = new Jumps(options.clock, options.elapsed ?? (() => options.clock.now()), ts)
    this.#armTimer()
  }

  get broken(): string | undefined {
    return this.#broken
  }

  /** Goes on with what its files hold now. Precondition: it is broken, so nothing is being written. */
  async resume(recovered: Recovered): Promise<void> {
    await this.#running
    await this.#file.close()
    const { position, ts, unsigned } = recovered
    this.#file = new ChainFile(this.#options.dir, { ...this.#options, ...recovered.end })
    this.#rids = new Set(recovered.rids)
    this.#durable = { position, ts, unsigned }
    this.#written = this.#durable
    this.#tally = recovered.tally
    this.#broken = recovered.broken
    this.#doubtful = recovered.doubtful
    this.#start()
  }

  /** Its end waits for `trustEnd` or `distrust`. */
  get isDoubtful(): boolean {
    return this.#doubtful !== undefined
  }

  /** Whether a record with this id is in it, as far as that is remembered. */
  has(rid: string): boolean {
    return this.#rids.has(rid)
  }

  /** Nothing is written to it any more: it is not what somebody else knows of it. */
  distrust(reason: string): void {
    this.#broken ??= reason
  }

  /** What follows the last good record was acknowledged to nobody: it is cut off once, and the chain goes on. */
  async trustEnd(): Promise<void> {
    this.#cutting ??= this.#cutEnd().finally(() => (this.#cutting = undefined))
    await this.#cutting
  }

  async #cutEnd(): Promise<void> {
    const doubtful = this.#doubtful
    if (!doubtful || this.#broken !== undefined) return
    const { dir, tenant } = this.#options
    const { bytes } = await cutDoubtful(dir, doubtful)
    this.#doubtful = undefined
    this.#options.log.warn('bytes that are no evidence were cut off the end of a chain', { tenant, bytes })
    const payload = { tornBytes: bytes, saved: true, after: this.#durable.position.seq }
    this.owe({ tenant, actor: 'system', point: 'recorder.recover', status: 'done', payload })
  }

  /** What is acknowledged now: a reader reads this much and no further. */
  get snapshot(): { readonly position: ChainPosition; readonly end: ChainTail['end'] } {
    return { position: this.#durable.position, end: this.#file.end }
  }

  /** Of the segment that is written to. */
  get tally(): Tally {
    return this.#tally
  }

  /** Ends the segment that is written to, if it has records: the next begins with a head that vouches for it. */
  async seal(): Promise<void> {
    if (this.#tally.records === 0 || this.#broken !== undefined) return
    this.#isSealDue = true
    this.#start()
    await this.#running
  }

  /** Resolves when the record is durable. */
  async append(entry: Entry): Promise<void> {
    if (this.#rids.has(entry.rid)) return
    const before = this.#pending.get(entry.rid)
    if (before) return before
    if (this.#queue.length >= MAX_QUEUE) throw new AirlockError('evidence_unavailable', 'Too many records wait.')
    const done = new Promise<void>((resolve, reject) => this.#queue.push({ ...entry, resolve, reject }))
    this.#pending.set(entry.rid, done)
    this.#start()
    return done
  }

  /** Writes a record of our own now, or whenever that becomes possible. */
  owe(record: NewRecord): void {
    this.#owed.push({
      rid: newId('rec'),
      process: 'recorder',
      record: newRecord.parse(record),
      at: this.#options.clock.now(),
    })
    this.#start()
  }

  /** The same for who waits. */
  async appendOwn(record: NewRecord): Promise<void> {
    await this.append({ rid: newId('rec'), process: 'recorder', record: newRecord.parse(record) })
  }

  signHead(position: ChainPosition & { readonly end?: true } = this.#durable.position): SignedHead {
    this.#assertWhole()
    const { tenant, keys, clock } = this.#options
    const ts = new Date(clock.now()).toISOString()
    return signHead(keys.signing, { tenant, ts, ...position })
  }

  /** Precondition: it is broken. */
  signBroken(): BrokenHead {
    const { tenant, keys, clock } = this.#options
    const broken = { reason: this.#broken ?? '' }
    return signBroken(keys.signing, {
      tenant,
      ...this.#durable.position,
      ts: new Date(clock.now()).toISOString(),
      broken,
    })
  }

  /** Writes what waits, signs a last head. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#isHeadDue = true
    this.#start()
    await this.#running
    clearTimeout(this.#timer)
    await this.#file.close()
  }

  #start(): void {
    this.#isAsked = true
    this.#running ??= this.#run()
  }

  async #run(): Promise<void> {
    // Everything that arrived with it joins the first batch.
    await Promise.resolve()
    do {
      this.#isAsked = false
      await this.#commit()
    } while (this.#isAsked || this.#queue.length > 0)
    this.#running = undefined
    this.#armTimer()
    // Idle chains hold no file open. A close that fails after a sync has nothing left to lose.
    if (this.#written.unsigned + this.#unsynced.length === 0) await this.#file.close().catch(() => undefined)
  }

  async #commit(): Promise<void> {
    const batch = this.#queue.splice(0, MAX_BATCH)
    // Whoever waits takes along what does not.
    const isPatient = batch.length > 0 && batch.every(({ patient }) => patient) && !this.#isHeadDue
    try {
      await this.#write(batch)
      if (isPatient) this.#company ??= setTimeout(() => this.#start(), COMPANY_MS)
      else await this.#sync()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing)
        this.#options.log.error('evidence cannot be written', { tenant: this.#options.tenant, error })
      this.#isFailing = true
      this.#refuse(batch, error)
    }
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    this.#assertWhole()
    const owed = this.#owed.length
    this.#isHeadDue &&= this.#written.unsigned + owed + batch.length > 0
    const isIdle = owed + batch.length === 0 && !this.#isHeadDue
    if (isIdle && !this.#isSealDue) return
    const failpoint = this.#failpointOf(batch)
    await failpoint('record.received')
    await this.#prepare()
    if (isIdle) return
    const draft = this.#draft([...this.#owed, ...batch])
    await this.#file.write(Buffer.from(`${draft.lines.join('\n')}\n`))
    this.#written = cursorOf(draft)
    this.#unsynced.push({ draft, owed: this.#owed.splice(0, owed), batch })
    this.#isHeadDue &&= draft.unsigned > 0
    await failpoint('record.written')
    for (const { onWritten } of batch) onWritten?.()
  }

  /** Acknowledges all that is written. */
  async #sync(): Promise<void> {
    const unsynced = this.#unsynced
    if (unsynced.length === 0) return
    const failpoint = this.#failpointOf(unsynced.flatMap(({ batch }) => batch))
    await this.#file.sync()
    await failpoint('record.synced')
    this.#durable = this.#written
    this.#forgetUnsynced()
    for (const { draft, owed, batch } of unsynced) {
      for (const record of draft.records) this.#tally.add(record)
      this.growth.add(draft.position.seq, draft.records.length)
      for (const { rid } of [...owed, ...batch]) this.#remember(rid)
      for (const { rid, resolve } of batch) {
        this.#pending.delete(rid)
        resolve()
      }
    }
    const head = unsynced.findLast(({ draft }) => draft.head)?.draft.head
    if (head) await this.#publish(head)
  }

  /** Everything that was not acknowledged, with the batch that was not even written. What is owed is owed again. */
  #refuse(batch: readonly Waiting[], error: unknown): void {
    const unsynced = this.#unsynced
    this.#written = this.#durable
    this.#forgetUnsynced()
    this.#owed.unshift(...unsynced.flatMap(({ owed }) => owed))
    for (const { rid, reject } of new Set([...unsynced.flatMap((written) => written.batch), ...batch])) {
      this.#pending.delete(rid)
      reject(error)
    }
  }

  #forgetUnsynced(): void {
    clearTimeout(this.#company)
    this.#company = undefined
    this.#unsynced = []
  }

  /** Our own records pass none, or an armed recorder would die before it serves. */
  #failpointOf(batch: readonly Waiting[]): Failpoint {
    return batch.length > 0 ? this.#options.failpoint : async () => {}
  }

  /** A segment to write to, verified again if an error left it in doubt. */
  async #prepare(): Promise<void> {
    const { dir, tenant, keys, segmentBytes = SEGMENT_BYTES } = this.#options
    if (this.#file.isSuspect) {
      await this.#file.restore()
      const { position, broken } = await verifyTail({ dir, tenant, keys }, this.#file.end)
      if (broken !== undefined || position.hash !== this.#durable.position.hash)
        this.#break(broken ?? 'its end is gone')
    }
    const { end } = this.#file
    if (end && end.size < segmentBytes && !this.#isSealDue) return
    await this.#sync()
    await this.#file.rotate(this.#durable.position.seq + 1, this.signHead())
    this.#isSealDue = false
    const tally = this.#tally
    this.#tally = new Tally()
    if (end) this.#options.onSealed?.(end.segment, tally)
  }

  #break(reason: string): never {
    this.#broken = reason
    throw brokenError(this.#options.tenant, reason)
  }

  /** Closed: nothing is signed or written while what stands at the end is not known to be evidence. */
  #assertWhole(): void {
    const { tenant } = this.#options
    if (this.#broken !== undefined) throw brokenError(tenant, this.#broken)
    if (this.#doubtful)
      throw new AirlockError('evidence_unavailable', `The end of the chain of ${tenant} is being checked.`)
  }

  #draft(entries: readonly (Entry & { readonly at?: number })[]): Draft {
    const draft: Draft = { ...cursorOf(this.#written), head: undefined, lines: [], records: [] }
    for (const entry of [...this.#draftJump(entries.length), ...entries]) {
      this.#draftRecord(draft, entry)
      if (draft.unsigned >= HEAD_RECORDS) this.#draftHead(draft)
    }
    if (this.#isHeadDue && draft.unsigned > 0) this.#draftHead(draft)
    return draft
  }

  /** Each edge of a jump of the clock, before the first record behind it. */
  #draftJump(waiting: number): readonly Entry[] {
    const jump = waiting > 0 ? this.#jumps.look() : undefined
    if (!jump) return []
    const [from, to] = [jump.from, jump.to].map((at) => new Date(at).toISOString())
    const payload = { from, to, byMs: Math.round(jump.to - jump.from) }
    const record = { tenant: this.#options.tenant, actor: 'system', point: 'recorder.clock', status: 'done', payload }
    return [{ rid: newId('rec'), process: 'recorder', record: newRecord.parse(record) }]
  }

  #draftRecord(draft: Draft, entry: Entry & { readonly at?: number }): void {
    const now = this.#options.clock.now()
    const isLate = entry.at !== undefined && now - entry.at > HEAD_MS
    const happenedAt = isLate ? new Date(entry.at).toISOString() : entry.record.happenedAt
    // What the clock says. The order of records is that of their numbers.
    draft.ts = now
    const unsealed = {
      ...redactRecord(entry.record),
      ...(happenedAt === undefined ? {} : { happenedAt }),
      seq: draft.position.seq + 1,
      ts: new Date(draft.ts).toISOString(),
      process: entry.process,
      late: happenedAt !== undefined,
      prev: draft.position.hash,
    }
    const { record, line } = sealRecord(unsealed, { rid: entry.rid, macKey: this.#options.keys.mac })
    draft.records.push(record)
    draft.lines.push(line)
    draft.position = { seq: record.seq, hash: record.hash }
    draft.unsigned += 1
  }

  #draftHead(draft: Draft): void {
    draft.head = this.signHead(draft.position)
    draft.lines.push(canonical(draft.head))
    draft.unsigned = 0
  }

  /** The head is in the chain already: a `head.json` that lags is caught up by the next one. */
  async #publish(head: SignedHead): Promise<void> {
    await this.#file.writeHead(head).catch((error: unknown) => {
      this.#options.log.warn('head.json could not be written', { tenant: this.#options.tenant, error })
    })
  }

  #remember(rid: string): void {
    this.#rids.add(rid)
    for (const oldest of this.#rids) {
      if (this.#rids.size <= KNOWN_RIDS) return
      this.#rids.delete(oldest)
    }
  }

  #armTimer(): void {
    if (this.#timer || this.#broken !== undefined || this.#doubtful || this.#written.unsigned + this.#owed.length === 0)
      return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#isHeadDue = true
      this.#start()
    }, HEAD_MS)
  }
}

function cursorOf({ position, ts, unsigned }: Cursor): Cursor {
  return { position, ts, unsigned }
}

function brokenError(tenant: string, reason: string): AirlockError {
  return new AirlockError('evidence_broken', `The evidence of ${tenant} is broken: ${reason}.`)
}
