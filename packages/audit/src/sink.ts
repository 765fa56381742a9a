import type { AuditQuery, AuditRecord, NewRecord, SignedHead } from '@airlock/contract'

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
  note(record: NewRecord): void
  /** Waits until everything noted is in the chain, for a bounded time; for shutdown. */
  flush(timeoutMs: number): Promise<void>
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
