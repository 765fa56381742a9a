import {
  type AgentSummary,
  AirlockError,
  type AuditQuery,
  type AuditRecord,
  type AuditStats,
  isAirlockError,
  isErrorCode,
  type NewRecord,
  type QuarantinedHead,
  type SignedHead,
} from '@airlock/contract'
import { type Clock, type Log, newId, systemClock } from '@airlock/std'
import { type Address, connectTo, LineSplitter } from '@airlock/wire'
import { z } from 'zod'
import { Acknowledged } from './acknowledged.ts'
import { NoteQueue } from './note-queue.ts'
import {
  type Followed,
  followed,
  headResult,
  MAX_RIDS,
  pageResult,
  quarantineResult,
  queryResult,
  type RecordPage,
  recorderReply,
  type Settled,
  settledResult,
  statsResult,
  summaryResult,
} from './protocol.ts'
import type { RecordFilter } from './record-filter.ts'
import { type Outcome, RecorderLink } from './recorder-link.ts'
import { redactRecord } from './redact.ts'
import type { EventReader, EvidenceKeeper, EvidenceReader, NoteOptions, StagedSink, Written } from './sink.ts'

const REQUIRE_MS = 5000
const READ_MS = 15_000
/** How long a reader waits for what was noted before. */
const NOTED_MS = 1000

export interface RecorderClientOptions {
  /** The recorder's socket for this process. */
  readonly socket: string
  /** A directory of this process alone; notes that the recorder does not have yet are kept there. */
  readonly spillDir: string
  readonly log: Log
  readonly clock?: Clock
  /** How long somebody waits for the record of a grant. */
  readonly requireMs?: number
}

/** The recorder, as every other process sees it. Connects, and sends what an earlier life spilled, by itself. */
export class RecorderClient implements StagedSink, EvidenceReader, EvidenceKeeper, EventReader {
  readonly #address: Address
  readonly #clock: Clock
  readonly #link: RecorderLink
  readonly #notes: NoteQueue
  readonly #acknowledged = new Acknowledged()
  readonly #requireMs: number

  constructor(options: RecorderClientOptions) {
    this.#address = { unix: options.socket }
    this.#requireMs = options.requireMs ?? REQUIRE_MS
    this.#clock = options.clock ?? systemClock
    this.#link = new RecorderLink(this.#address)
    const parts = { link: this.#link, clock: this.#clock, acknowledged: this.#acknowledged }
    this.#notes = new NoteQueue({ ...options, ...parts })
  }

  /** Sent twice at most, with one `rid`: it is in the chain once when this resolves. */
  async require(record: NewRecord): Promise<void> {
    // The recorder refuses what does not fit.
    const rid = newId('rec')
    const request = { op: 'append', rid, record: redactRecord(record) }
    throwUnlessTaken(await this.#ask(request, this.#requireMs))
    this.#acknowledged.add(record.tenant, rid)
  }

  async requireWritten(record: NewRecord): Promise<Written> {
    const rid = newId('rec')
    const request = { op: 'append', rid, early: true, record: redactRecord(record) }
    const written = Promise.withResolvers<void>()
    const durable = this.#ask(request, this.#requireMs, written.resolve).then((outcome) => {
      throwUnlessTaken(outcome)
      this.#acknowledged.add(record.tenant, rid)
    })
    // Whoever was told that it is written hears the rest by `durable`, when he asks.
    durable.then(written.resolve, written.reject)
    await written.promise
    return { durable }
  }

  note(record: NewRecord, options: NoteOptions = {}): void {
    this.#notes.add(record, options)
  }

  async flush(timeoutMs: number): Promise<void> {
    await this.#notes.flush(timeoutMs)
  }

  async query(
    tenant: string,
    query: AuditQuery,
  ): Promise<{ readonly records: readonly AuditRecord[]; readonly nextCursor: string | null }> {
    await this.#notes.flush(NOTED_MS)
    return resultOf(await this.#ask({ op: 'query', tenant, query }, READ_MS), queryResult)
  }

  get lives(): number {
    return this.#link.connections
  }

  async settle(tenant: string, head: SignedHead | null): Promise<Settled> {
    const rids = this.#acknowledged.of(tenant).slice(-MAX_RIDS)
    return resultOf(await this.#ask({ op: 'settle', tenant, head, rids }, READ_MS), settledResult)
  }

  async quarantine(
    tenant: string,
    asked: { readonly by: string; readonly head: SignedHead | null },
  ): Promise<QuarantinedHead> {
    const statement = resultOf(await this.#ask({ op: 'quarantine', tenant, ...asked }, READ_MS), quarantineResult)
    this.#acknowledged.forget(tenant)
    return statement
  }

  async head(tenant: string): Promise<{ readonly head: SignedHead; readonly publicKey: string }> {
    await this.#notes.flush(NOTED_MS)
    return resultOf(await this.#ask({ op: 'head', tenant }, READ_MS), headResult)
  }

  async page(tenant: string, asked: Parameters<EventReader['page']>[1]): Promise<RecordPage> {
    await this.#notes.flush(NOTED_MS)
    return resultOf(await this.#ask({ op: 'page', tenant, ...asked }, READ_MS), pageResult)
  }

  async summary(tenant: string, of: Parameters<EventReader['summary']>[1]): Promise<AgentSummary> {
    await this.#notes.flush(NOTED_MS)
    return resultOf(await this.#ask({ op: 'summary', tenant, ...of }, READ_MS), summaryResult)
  }

  async stats(tenant: string): Promise<AuditStats> {
    await this.#notes.flush(NOTED_MS)
    return resultOf(await this.#ask({ op: 'stats', tenant }, READ_MS), statsResult)
  }

  async *export(tenant: string, signal: AbortSignal): AsyncGenerator<string> {
    await this.#notes.flush(NOTED_MS)
    yield* this.#lines({ op: 'export', tenant }, signal)
  }

  async *follow(
    tenant: string,
    asked: { readonly filter: RecordFilter; readonly after?: number | undefined },
    signal: AbortSignal,
  ): AsyncGenerator<Followed> {
    for await (const line of this.#lines({ op: 'follow', tenant, ...asked }, signal))
      yield followed.parse(JSON.parse(line))
  }

  /** What was noted and is not acknowledged stays in the spill for the next life. */
  close(): void {
    this.#notes.close()
    this.#link.close()
  }

  /** On a connection of its own, read only as fast as the caller takes the lines. */
  async *#lines(request: object, signal: AbortSignal): AsyncGenerator<string> {
    signal.throwIfAborted()
    const socket = connectTo(this.#address)
    const onAbort = () => socket.destroy()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      socket.write(`${JSON.stringify({ id: 0, ...request })}\n`)
      yield* repliedLines(socket)
    } catch (error) {
      signal.throwIfAborted()
      throw isAirlockError(error) ? error : unavailable(error)
    } finally {
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
    }
  }

  /** Asks once more when the connection died before the answer. */
  async #ask(request: object, timeoutMs: number, onWritten?: () => void): Promise<Outcome> {
    const until = this.#clock.now() + timeoutMs
    const answer = this.#link.request(() => request, timeoutMs, onWritten)
    this.#link.hurry()
    const outcome = await answer
    if (outcome.type !== 'lost') return outcome
    const leftMs = Math.max(0, Math.min(timeoutMs, until - this.#clock.now()))
    return this.#link.request(() => request, leftMs, onWritten)
  }
}

/** What the recorder says of this tenant alone is told as it is; everything else comes to the same. */
const OF_TENANT: ReadonlySet<string> = new Set(['evidence_broken', 'evidence_full'])

function throwUnlessTaken(outcome: Outcome): void {
  if (outcome.type === 'ok') return
  if (outcome.type === 'error' && isErrorCode(outcome.code) && OF_TENANT.has(outcome.code))
    throw new AirlockError(outcome.code, outcome.message, { cause: outcome })
  throw new AirlockError('evidence_unavailable', undefined, { cause: outcome })
}

function resultOf<T>(outcome: Outcome, schema: z.ZodType<T>): T {
  if (outcome.type === 'ok') return schema.parse(outcome.result)
  if (outcome.type === 'error' && isErrorCode(outcome.code)) throw new AirlockError(outcome.code, outcome.message)
  throw unavailable(outcome)
}

/** Ends only with the recorder's word that this was all: a connection that just closes is an error. */
async function* repliedLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const splitter = new LineSplitter()
  for await (const chunk of bytes)
    for (const line of splitter.push(chunk)) {
      const reply = recorderReply.parse(JSON.parse(line))
      if (reply.type === 'written') continue
      if (reply.type !== 'line') return void resultOf(reply, z.unknown())
      yield reply.line
    }
  throw unavailable()
}

function unavailable(cause?: unknown): AirlockError {
  return new AirlockError('evidence_unavailable', 'The recorder does not answer.', { cause })
}
