import { canonical } from '@airlock/audit'
import { createHash } from 'node:crypto'

/** A change of the contents that has begun. Until it is finished, and when it never is, the history is unknown. */
export interface Change {
  /** Whether the history is known, so that the bytes of the change have to be hashed. */
  readonly counts: boolean
  finish(what: Readonly<Record<string, unknown>>): void
}

interface Entry {
  /** It can write to the host, so what it does outlives it. */
  readonly writesOutside: boolean
  /** Undefined: unknown. */
  history: string | undefined
  /** The change under way. */
  change: symbol | undefined
}

/**
 * Sandboxes that were created for one run. The history of such a sandbox is a digest of what it was made from and of all that its callers did
 * in it. An approval for one holds for another with the same history. It is kept in memory: after a restart of the control plane a sandbox
 * is no longer ephemeral, and more is asked.
 */
export class EphemeralSandboxes {
  readonly #entries = new Map<string, Entry>()

  add(id: string, writesOutside: boolean, madeFrom: Readonly<Record<string, unknown>>): void {
    this.#entries.set(id, { writesOutside, history: digestOf('', { madeFrom }), change: undefined })
  }

  remove(id: string): void {
    this.#entries.delete(id)
  }

  /** Whether nothing that is done in it outlives it. */
  has(id: string | null): boolean {
    return id !== null && this.#entries.get(id)?.writesOutside === false
  }

  historyOf(id: string | null): string | undefined {
    return id === null ? undefined : this.#entries.get(id)?.history
  }

  /** Something that begins at once and is known whole. */
  append(id: string, what: Readonly<Record<string, unknown>>): void {
    const entry = this.#entries.get(id)
    if (entry?.history !== undefined) entry.history = digestOf(entry.history, what)
  }

  /** Something whose bytes are not known. */
  forgetHistory(id: string): void {
    const entry = this.#entries.get(id)
    if (entry) Object.assign(entry, { history: undefined, change: undefined })
  }

  /** Two changes at once have no order, so they leave no history. */
  begin(id: string): Change {
    const entry = this.#entries.get(id)
    const before = entry?.history
    if (!entry || before === undefined) {
      this.forgetHistory(id)
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
}

function digestOf(before: string, what: Readonly<Record<string, unknown>>): string {
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
