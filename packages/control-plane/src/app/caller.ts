import type { Principal, SandboxPrincipal } from '@airlock/contract'

interface Asking<P> {
  readonly principal: P
  readonly requestId: string
  /** The request itself, as far as an approval of it is bound to it. */
  readonly asked?: AskedRequest | undefined
  /** How long the caller waits for a person's answer; absent is not at all. */
  readonly approvalWait?: ApprovalWait | undefined
  /** Throws when the caller may not ask any more. Called after each wait, before an approval is used. */
  readonly assertGood?: (() => Promise<void>) | undefined
}

/** Who calls and by which request: known before anything else is. */
export type Caller = Asking<Principal>

/** A program in a sandbox that asks Guardian. No method of a subject takes one, so it can do nothing else. */
export type SandboxCaller = Asking<SandboxPrincipal>

/** Whoever may ask Guardian. */
export type AnyCaller = Caller | SandboxCaller

/** What was sent, parsed: the same request again is the same here. */
export interface AskedRequest {
  readonly route: string
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  /** SHA-256 of the bytes that are sent along. Reads them first, and keeps them for who uses them. */
  digest?(): Promise<string>
  /** How much of them is kept in memory. */
  heldBytes?(): number
}

export interface ApprovalWait {
  /** In epoch milliseconds. */
  readonly until: number
  /** Aborts when the caller is gone or the server stops. */
  readonly signal: AbortSignal
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly nextCursor: string | null
}

/** One more row than asked for says whether there is a next page. */
export function toPage<R extends { readonly id: string }, T>(
  rows: readonly R[],
  limit: number,
  show: (row: R) => T,
): Page<T> {
  const shown = rows.slice(0, limit)
  return { items: shown.map(show), nextCursor: rows.length > limit ? (shown.at(-1)?.id ?? null) : null }
}
