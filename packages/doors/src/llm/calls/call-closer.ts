import type { CloseModelCall } from '@airlock/contract'
import { deadline, type Log, sleep, waitFor } from '@airlock/std'
import type { ControlPlaneLink } from '../../link/control-plane-link.ts'

type End = CloseModelCall & { readonly sandbox: string }

const ANSWER_MS = 5_000
const FIRST_RETRY_MS = 50
const LAST_RETRY_MS = 2_000
/** An hour of retries. */
const MAX_ATTEMPTS = 1_800
const MAX_PENDING = 16_384
const FLUSH_MS = 2_000

/**
 * Reports how calls ended, again until the control plane has heard it. A report is idempotent. A report that is given up, or
 * that dies with this process, is made up by the control plane: it charges the call its ceiling.
 */
export class CallCloser {
  readonly #link: Pick<ControlPlaneLink, 'closeModelCall'>
  readonly #log: Log
  readonly #stopped = new AbortController()
  /** Calls that are open, or whose end the control plane has not heard. */
  readonly #held = new Set<string>()
  #pending = 0

  constructor(link: Pick<ControlPlaneLink, 'closeModelCall'>, log: Log) {
    this.#link = link
    this.#log = log
  }

  get held(): readonly string[] {
    return [...this.#held]
  }

  /** A call that will be closed. */
  opened(callId: string): void {
    this.#held.add(callId)
  }

  close(end: End): void {
    this.#held.add(end.callId)
    if (this.#pending >= MAX_PENDING) return this.#giveUp(end, 'too many are waiting')
    this.#pending += 1
    void this.#deliver(end).finally(() => (this.#pending -= 1))
  }

  /** Reports what is left, for a moment, and gives up the rest. */
  async stop(): Promise<void> {
    const isDone = async () => Promise.resolve(this.#pending === 0 || undefined)
    // Late reports are made up by the control plane.
    await waitFor(isDone, { signal: deadline(FLUSH_MS), everyMs: 10 }).catch(() => {})
    this.#stopped.abort()
  }

  async #deliver(end: End): Promise<void> {
    const { signal } = this.#stopped
    for (let attempt = 0; attempt < MAX_ATTEMPTS && !signal.aborted; attempt++)
      try {
        await this.#link.closeModelCall(end, { answerMs: ANSWER_MS, signal })
        return void this.#held.delete(end.callId)
      } catch {
        // The control plane is away, or has no room: it hears of it later.
        await sleep(Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt, 10)), signal).catch(() => {})
      }
    this.#giveUp(end, 'the control plane did not take it')
  }

  /** The call stays held: the control plane takes one that is not for one that was never sent. */
  #giveUp({ callId, sandbox }: End, why: string): void {
    this.#log.error('could not report the end of a model call', { call: callId, sandbox, why })
  }
}
