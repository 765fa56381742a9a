import type { NoteOptions, StagedSink, Written } from '@airlock/audit'
import type { NewRecord } from '@airlock/contract'

interface RefusalBounds {
  readonly windowMs: number
  /** How many of one caller are written in a window, of whatever kind. */
  readonly perCaller: number
  /** How many of each kind are written all the same. */
  readonly perKind: number
  /** How many callers are known at once. */
  readonly callers: number
}

const USUAL: RefusalBounds = { windowMs: 60_000, perCaller: 100, perKind: 5, callers: 10_000 }

/** What one caller was refused in a window. */
interface Refused {
  readonly timer: NodeJS.Timeout
  readonly kinds: Map<string, Kind>
  written: number
}

interface Kind {
  written: number
  /** Those that are not written, and what they have in common. */
  counted: number
  common: NewRecord
}

/**
 * Evidence of refusals, bounded: anybody can be refused as often as they like, and what fills the evidence pushes out the rest of
 * it. The first of a caller are written as they are; the others are counted by kind, and the count is a record when the
 * window is over, or when the server ends. Everything else passes.
 */
export class CountedRefusals implements StagedSink {
  readonly #to: StagedSink
  readonly #bounds: RefusalBounds
  readonly #callers = new Map<string, Refused>()

  constructor(to: StagedSink, bounds: RefusalBounds = USUAL) {
    this.#to = to
    this.#bounds = bounds
  }

  async require(record: NewRecord): Promise<void> {
    await this.#to.require(record)
  }

  async requireWritten(record: NewRecord): Promise<Written> {
    return this.#to.requireWritten(record)
  }

  note(record: NewRecord, options?: NoteOptions): void {
    if (record.status !== 'denied' || this.#isWritten(record)) this.#to.note(record, options)
  }

  async flush(timeoutMs: number): Promise<void> {
    for (const caller of this.#callers.keys()) this.#close(caller)
    await this.#to.flush(timeoutMs)
  }

  #isWritten(record: NewRecord): boolean {
    const caller = this.#callerOf(record)
    const kind = kindOf(caller, record)
    if (caller.written >= this.#bounds.perCaller && kind.written >= this.#bounds.perKind) {
      kind.common = kind.counted === 0 ? record : commonOf(kind.common, record)
      kind.counted += 1
      return false
    }
    caller.written += 1
    kind.written += 1
    return true
  }

  #callerOf({ tenant, actor }: NewRecord): Refused {
    const name = `${tenant} ${actor}`
    const known = this.#callers.get(name)
    if (known) return known
    const [oldest] = this.#callers.keys()
    if (oldest !== undefined && this.#callers.size >= this.#bounds.callers) this.#close(oldest)
    const timer = setTimeout(() => this.#close(name), this.#bounds.windowMs).unref()
    const fresh = { timer, kinds: new Map<string, Kind>(), written: 0 }
    this.#callers.set(name, fresh)
    return fresh
  }

  /** Writes what was only counted, and begins anew. */
  #close(name: string): void {
    const caller = this.#callers.get(name)
    if (!caller) return
    clearTimeout(caller.timer)
    this.#callers.delete(name)
    for (const { counted, common } of caller.kinds.values()) if (counted > 0) this.#to.note(countOf(common, counted))
  }
}

function kindOf({ kinds }: Refused, record: NewRecord): Kind {
  const { point, error, payload = {} } = record
  const name = JSON.stringify([point, error?.code, payload['route'], payload['reason']])
  const known = kinds.get(name)
  if (known) return known
  const fresh = { written: 0, counted: 0, common: record }
  kinds.set(name, fresh)
  return fresh
}

function commonOf(one: NewRecord, other: NewRecord): NewRecord {
  const { agent = null, sandbox = null } = other
  return { ...one, agent: one.agent === agent ? agent : null, sandbox: one.sandbox === sandbox ? sandbox : null }
}

function countOf({ decision: _decision, durationMs: _durationMs, ...common }: NewRecord, refusals: number): NewRecord {
  const { route, reason } = common.payload ?? {}
  const kind = { ...(route === undefined ? {} : { route }), ...(reason === undefined ? {} : { reason }) }
  return { ...common, payload: { refusals, ...kind } }
}
