import { canonical } from '@airlock/audit'
import { AirlockError, type Point } from '@airlock/contract'
import { createHash } from 'node:crypto'

/** A change of the contents that has begun. Until it is finished, and when it never is, the history is unknown. */
export interface Change {
  /** Whether the history is known, so that the bytes of the change have to be hashed. */
  readonly counts: boolean
  finish(what: Words): void
}

type Words = Readonly<Record<string, unknown>>

interface Entry {
  /** It can write to the host, so what it does outlives it. */
  readonly writesOutside: boolean
  /** Undefined: unknown. */
  history: string | undefined
  /** The change under way. */
  change: symbol | undefined
  /** What may come next by its history: a command where nothing ran, or a step of the one session. */
  next: 'command.run' | 'step.run'
  /** An approval of the last deed was used: nothing may be done beside it or after it. */
  isSealed: boolean
}

/**
 * Sandboxes that were created for one run. The history of such a sandbox is a digest of what it was made from and of all that its callers did
 * in it, as long as that is one thing after the other: files, then one command; or files and steps of one session. An approval for one holds
 * for another with the same history, and seals it. It is kept in memory: after a restart of the control plane a sandbox is no longer
 * ephemeral, and more is asked.
 */
export class EphemeralSandboxes {
  readonly #entries = new Map<string, Entry>()

  add(id: string, writesOutside: boolean, madeFrom: Words): void {
    const history = digestOf('', { madeFrom })
    this.#entries.set(id, { writesOutside, history, change: undefined, next: 'command.run', isSealed: false })
  }

  remove(id: string): void {
    this.#entries.delete(id)
  }

  /** Whether nothing that is done in it outlives it. */
  has(id: string | null): boolean {
    return id !== null && this.#entries.get(id)?.writesOutside === false
  }

  /** What a command or a step at `point` is known by; undefined where the sandbox itself has to be named. */
  historyOf(id: string | null, point: Point): string | undefined {
    const entry = id === null ? undefined : this.#entries.get(id)
    return entry?.next === point ? entry.history : undefined
  }

  /** Before an approval is used that was found by this history. False when something came in between. */
  seal(id: string, point: Point, history: string): boolean {
    const entry = this.#entries.get(id)
    if (!entry || entry.isSealed || this.historyOf(id, point) !== history) return false
    entry.isSealed = true
    return true
  }

  /** The approval was not used after all. */
  unseal(id: string): void {
    const entry = this.#entries.get(id)
    if (entry) entry.isSealed = false
  }

  /** A session is opened. Two have no order. */
  openSession(id: string, what: Words): void {
    const entry = this.#changeable(id)
    if (!entry) return
    if (entry.next === 'step.run') return this.#forget(entry)
    this.#append(entry, what)
    entry.next = 'step.run'
  }

  /** A step begins. It waits for its turn, so those of one session are in order. `isApproved`: by an approval that sealed the sandbox. */
  step(id: string, what: Words, isApproved: boolean): void {
    const entry = isApproved ? this.#entries.get(id) : this.#changeable(id)
    if (entry?.next === 'step.run') this.#append(entry, what)
    else if (entry) this.#forget(entry)
  }

  /** Something that other things are not in order with: a command, a signal, input, other limits. */
  disturb(id: string, isApproved = false): void {
    const entry = isApproved ? this.#entries.get(id) : this.#changeable(id)
    if (entry) this.#forget(entry)
  }

  /** Something that begins at once and is known whole. */
  append(id: string, what: Words): void {
    const entry = this.#changeable(id)
    if (entry) this.#append(entry, what)
  }

  /** Two changes at once have no order, so they leave no history. */
  begin(id: string): Change {
    const entry = this.#changeable(id)
    const before = entry?.history
    if (!entry || before === undefined) {
      if (entry) this.#forget(entry)
      return { counts: false, finish: () => undefined }
    }
    const mine = Symbol('change')
    Object.assign(entry, { history: undefined, change: mine })
    return {
      counts: true,
      finish: (what) => {
        if (entry.change === mine) Object.assign(entry, { history: digestOf(before, what), change: undefined })
      },
    }
  }

  /** Throws `policy_denied` in a sealed sandbox. */
  #changeable(id: string): Entry | undefined {
    const entry = this.#entries.get(id)
    if (!entry?.isSealed) return entry
    throw new AirlockError(
      'policy_denied',
      'A person approved what was done last in this sandbox, so nothing is done beside it.',
      {
        hint: 'Do it in a new sandbox.',
      },
    )
  }

  /** What comes while a change is under way has no order with it. */
  #append(entry: Entry, what: Words): void {
    if (entry.history === undefined) this.#forget(entry)
    else entry.history = digestOf(entry.history, what)
  }

  #forget(entry: Entry): void {
    Object.assign(entry, { history: undefined, change: undefined })
  }
}

function digestOf(before: string, what: Words): string {
  return createHash('sha256').update(canonical({ before, what })).digest('hex')
}

/** Hashes bytes that pass through, where that is wanted. */
export function hashThrough(
  bytes: AsyncIterable<Buffer>,
  isWanted: boolean,
): { readonly bytes: AsyncIterable<Buffer>; digest(): string } {
  const hash = createHash('sha256')
  const through = async function* () {
    for await (const chunk of bytes) {
      hash.update(chunk)
      yield chunk
    }
  }
  return { bytes: isWanted ? through() : bytes, digest: () => hash.digest('hex') }
}
