import type { Decision, Principal, Question } from '@airlock/contract'

/** Who asks for something, by which request, and how long it would wait for a person's answer. */
export interface Asker {
  readonly principal: Principal
  readonly requestId: string
  /** The request itself, as far as an approval of it is bound to it. */
  readonly asked?: AskedRequest | undefined
  readonly approvalWait?: ApprovalWait | undefined
}

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

/** What becomes of an *ask*. */
export interface Approvals {
  /**
   * Answers a decision that allows, which names the approval among its rules; `again` when the answer was waited for, so that what
   * holds now is looked at anew; or throws `approval_required`, or `policy_denied` when a person said no. That it was refused is
   * recorded by Guardian.
   */
  settle(asker: Asker, question: Question, decision: Decision): Promise<Decision | 'again'>
}
