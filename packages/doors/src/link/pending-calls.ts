import { AirlockError } from '@airlock/contract'

interface PendingCall {
  readonly sandbox: string
  readonly settle: (outcome: unknown) => void
}

/** Calls that were sent and have no answer yet. Each is settled once: later answers find nobody. */
export class PendingCalls {
  readonly #most: number
  readonly #mostOfSandbox: number
  readonly #calls = new Map<number, PendingCall>()
  readonly #bySandbox = new Map<string, number>()
  #lastId = 0

  constructor(most: number, mostOfSandbox: number) {
    this.#most = most
    this.#mostOfSandbox = mostOfSandbox
  }

  /** Throws `too_many_requests` when there are too many, of all or of that sandbox. */
  add(sandbox: string): {
    readonly id: number
    readonly answer: Promise<unknown>
    readonly settle: (outcome: unknown) => boolean
  } {
    const count = this.#bySandbox.get(sandbox) ?? 0
    if (this.#calls.size >= this.#most || count >= this.#mostOfSandbox) throw new AirlockError('too_many_requests')
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const settle = (outcome: unknown) => (outcome instanceof AirlockError ? reject(outcome) : resolve(outcome))
    this.#calls.set(id, { sandbox, settle })
    this.#bySandbox.set(sandbox, count + 1)
    return { id, answer: promise, settle: (outcome) => this.settle(id, outcome) }
  }

  /** An `AirlockError` fails the call. False when it was settled before. */
  settle(id: number, outcome: unknown): boolean {
    const call = this.#calls.get(id)
    if (!call) return false
    this.#calls.delete(id)
    const left = (this.#bySandbox.get(call.sandbox) ?? 1) - 1
    if (left > 0) this.#bySandbox.set(call.sandbox, left)
    else this.#bySandbox.delete(call.sandbox)
    call.settle(outcome)
    return true
  }

  /** Fails the calls of these sandboxes, or with null all, and answers which they were. */
  refuse(sandboxes: readonly string[] | null, error: AirlockError): readonly number[] {
    const refused = [...this.#calls].filter(([, { sandbox }]) => sandboxes?.includes(sandbox) ?? true)
    return refused.map(([id]) => id).filter((id) => this.settle(id, error))
  }
}
