import type {
  AgentSummary,
  AuditQuery,
  AuditRecord,
  AuditStats,
  NewRecord,
  QuarantinedHead,
  SignedHead,
} from '@airlock/contract'
import type { Followed, RecordPage, Settled } from './protocol.ts'
import type { RecordFilter } from './record-filter.ts'

/**
 * Where a process writes its evidence. There is one way in, and it ends in the recorder.
 *
 * What grants or continues calls `require` and waits: when it rejects (`evidence_unavailable`), the action must not
 * happen. What reduces (deny, end, revoke) calls `note`, which never waits and never fails: the record is kept, spilled
 * to disk beside the sockets where that is possible, sent again until the recorder has it, and joins the chain marked
 * late if the action was over before. Payloads are redacted before they leave the process.
 */
export interface AuditSink {
  require(record: NewRecord): Promise<void>
  note(record: NewRecord, options?: NoteOptions): void
  /** Waits until everything noted is in the chain, for a bounded time; for shutdown. */
  flush(timeoutMs: number): Promise<void>
}

export interface NoteOptions {
  /** The id of the record, where the same may be noted again after a restart: the chain has it once. */
  readonly rid?: string | undefined
  /** Hears, once, that the recorder has it or that it is lost. After a restart nobody is told. */
  readonly onSettled?: ((how: 'kept' | 'lost') => void) | undefined
}

/** For what stays inside a sandbox at first. */
export interface StagedSink extends AuditSink {
  /**
   * `require` in two stages. When it resolves the record is in its file, and no death of a process can lose it; what a
   * sandbox does from then on, a host that fails takes along together with the record. Nothing of it may leave, neither
   * an answer nor a word, before `durable` resolves.
   */
  requireWritten(record: NewRecord): Promise<Written>
}

export interface Written {
  /** Rejects with `evidence_unavailable` when the record did not get to the disk. */
  readonly durable: Promise<void>
}

/** Reads evidence back, through the recorder. Each call is for one tenant: there is no call for all. */
export interface EvidenceReader {
  query(
    tenant: string,
    query: AuditQuery,
  ): Promise<{ readonly records: readonly AuditRecord[]; readonly nextCursor: string | null }>
  /** The chain as NDJSON lines (records and heads), ending with a head signed for this export. */
  export(tenant: string, signal: AbortSignal): AsyncIterable<string>
  /** Signs the head now. `seq` 0 when the chain is empty. */
  head(tenant: string): Promise<{ readonly head: SignedHead; readonly publicKey: string }>
}

/** Looks after chains, one at a time. */
export interface EvidenceKeeper {
  /** Changes whenever the recorder may be another process than before, for which no chain is settled. */
  readonly lives: number
  /**
   * Whether the chain has what the store knows of it. Bytes at its end that are no evidence are cut off when nothing that was acknowledged
   * is among them; else, and when the chain lacks something, it is broken: read up to there, and nothing is granted.
   */
  settle(tenant: string, head: SignedHead | null): Promise<Settled>
  /** Sets aside what does not verify of a broken chain, which then goes on behind a signed statement of that. `head` is the one in the store. */
  quarantine(tenant: string, asked: { readonly by: string; readonly head: SignedHead | null }): Promise<QuarantinedHead>
}

/** Tells what happens, and what happened, from the evidence. Each call is for one tenant. */
export interface EventReader {
  /** Oldest first: what comes after `after`; without it the latest `limit`. */
  page(
    tenant: string,
    asked: { readonly filter: RecordFilter; readonly after?: number | undefined; readonly limit: number },
  ): Promise<RecordPage>
  /** The same without an end; without `after` from now on, unless `filter.since` says when. Ends with the signal or an error. */
  follow(
    tenant: string,
    asked: { readonly filter: RecordFilter; readonly after?: number | undefined },
    signal: AbortSignal,
  ): AsyncIterable<Followed>
  /** Of whole days, both included. */
  summary(
    tenant: string,
    of: { readonly agent: string; readonly from: string; readonly to: string },
  ): Promise<AgentSummary>
  stats(tenant: string): Promise<AuditStats>
}
