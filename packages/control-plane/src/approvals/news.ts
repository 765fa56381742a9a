import type { StoredApproval } from '../store/approvals.ts'

type Listener = (approval: StoredApproval) => void

/** Tells who listens in this process what became of asks, as it happens here. Others are told by the store. */
export class ApprovalNews {
  readonly #listeners = new Set<Listener>()

  publish(approval: StoredApproval): void {
    for (const listener of this.#listeners) listener(approval)
  }

  /** Answers how to end it. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
