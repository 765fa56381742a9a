import { createHash, type Hash } from 'node:crypto'
import { type NoteOptions, redact, type StagedSink, type Written } from '@airlock/audit'
import type { Decision, NewRecord } from '@airlock/contract'

interface RefusalBounds {
  readonly windowMs: number
  /** Records written in a window for one caller, for each effect of Guardian and for all other refusals. */
  readonly perCaller: number
  /** How many of each kind are written all the same. */
  readonly perKind: number
  /** Kinds of one caller that are told apart. */
  readonly kinds: number
  /** Counts of one caller that name their sandbox. */
  readonly counts: number
  /** How many callers are known at once. */
  readonly callers: number
}

const USUAL: RefusalBounds = {
  windowMs: 60_000,
  perCaller: 100,
  perKind: 5,
  kinds: 500,
  counts: 100,
  callers: 10_000,
}

/** What one caller was refused in a window. */
interface Refused {
  readonly timer: NodeJS.Timeout
  readonly kinds: Map<string, Kind>
  /** By budget. */
  readonly written: Map<string, number>
  counts: number
}

interface Kind {
  written: number
  /** By sandbox, where the kind names one. */
  readonly counts: Map<string | null, Count>
}

/** Refusals that were not written, and what they have in common. */
interface Count {
  refusals: number
  common: NewRecord
  /** Of what Guardian was asked, in order; undefined of other refusals. */
  lines: Hash | undefined
}

/**
 * Evidence of refusals, bounded: a caller can be refused as often as they like, and what fills the evidence pushes out the rest of
 * it. The first refusals of a caller are written as they are. The others are counted by kind, and the count is a record when the
 * window is over, or when the server ends. Denials of Guardian have a budget of their own: no other refusal hides them, and their
 * counts name the rule, the sandbox and a digest of the lines. Everything else passes.
 */
export class CountedRefusals implements StagedSink {
  readonly #to: StagedSink
  readonly #bounds: RefusalBounds
  readonly #callers = new Map<string, Refused>()

  constructor(to: StagedSink, bounds: Partial<RefusalBounds> = {}) {
    this.#to = to
    this.#bounds = { ...USUAL, ...bounds }
  }

  async require(record: NewRecord): Promise<void> {
    await this.#to.require(record)
  }

  async requireWritten(record: NewRecord): Promise<Written> {
    return this.#to.requireWritten(record)
  }

  note(record: NewRecord, options?: NoteOptions): void {
    // Connections that were denied are counted by host, behind this.
    const isCounted = record.status === 'denied' && record.point !== 'network.connect'
    if (!isCounted || this.#isWritten(record)) this.#to.note(record, options)
  }

  async flush(timeoutMs: number): Promise<void> {
    for (const caller of this.#callers.keys()) this.#close(caller)
    await this.#to.flush(timeoutMs)
  }

  #isWritten(record: NewRecord): boolean {
    const caller = this.#callerOf(record)
    const kind = this.#kindOf(caller, record)
    const budget = record.decision?.effect ?? 'none'
    const written = caller.written.get(budget) ?? 0
    if (written >= this.#bounds.perCaller && kind.written >= this.#bounds.perKind) {
      this.#count(caller, kind, record)
      return false
    }
    caller.written.set(budget, written + 1)
    kind.written += 1
    return true
  }

  #count(caller: Refused, { counts }: Kind, record: NewRecord): void {
    const sandbox = record.decision ? (record.sandbox ?? null) : null
    const isNamed = counts.has(sandbox) || caller.counts < this.#bounds.counts
    const name = isNamed ? sandbox : null
    const known = counts.get(name)
    if (!known) caller.counts += 1
    const count = known ?? { refusals: 0, common: commonPart(record), lines: undefined }
    count.refusals += 1
    count.common = commonOf(count.common, commonPart(record))
    if (record.decision) count.lines = (count.lines ?? createHash('sha256')).update(lineOf(record))
    counts.set(name, count)
  }

  #callerOf({ tenant, actor }: NewRecord): Refused {
    const name = `${tenant} ${actor}`
    const known = this.#callers.get(name)
    if (known) return known
    const [oldest] = this.#callers.keys()
    if (oldest !== undefined && this.#callers.size >= this.#bounds.callers) this.#close(oldest)
    const timer = setTimeout(() => this.#close(name), this.#bounds.windowMs).unref()
    const fresh = { timer, kinds: new Map<string, Kind>(), written: new Map<string, number>(), counts: 0 }
    this.#callers.set(name, fresh)
    return fresh
  }

  /** Names of rules that a source makes up are not told apart without end. */
  #kindOf({ kinds }: Refused, { point, error, payload = {}, decision }: NewRecord): Kind {
    const of = [point, error?.code, payload['route'], payload['reason'], decision?.effect]
    const named = JSON.stringify([...of, decision && ruleOf(decision)])
    const name = kinds.has(named) || kinds.size < this.#bounds.kinds ? named : JSON.stringify(of)
    const known = kinds.get(name)
    if (known) return known
    const fresh = { written: 0, counts: new Map<string | null, Count>() }
    kinds.set(name, fresh)
    return fresh
  }

  /** Writes what was only counted, and begins anew. */
  #close(name: string): void {
    const caller = this.#callers.get(name)
    if (!caller) return
    clearTimeout(caller.timer)
    this.#callers.delete(name)
    for (const { counts } of caller.kinds.values()) for (const count of counts.values()) this.#to.note(recordOf(count))
  }
}

/** What a count says of one refusal: its kind, and whom it is about. */
function commonPart({ payload = {}, decision, durationMs: _durationMs, ...record }: NewRecord): NewRecord {
  const { route, reason } = payload
  const kind = { ...(route === undefined ? {} : { route }), ...(reason === undefined ? {} : { reason }) }
  return { ...record, payload: { ...kind, ...(decision ? { rule: ruleOf(decision) } : {}) } }
}

function commonOf(one: NewRecord, other: NewRecord): NewRecord {
  const { agent = null, sandbox = null, payload } = other
  const rule = one.payload?.['rule'] === payload?.['rule'] ? {} : { rule: null }
  return {
    ...one,
    agent: one.agent === agent ? agent : null,
    sandbox: one.sandbox === sandbox ? sandbox : null,
    payload: { ...one.payload, ...rule },
  }
}

function recordOf({ refusals, common, lines }: Count): NewRecord {
  return { ...common, payload: { refusals, ...common.payload, ...(lines ? { sha256: lines.digest('hex') } : {}) } }
}

/** The first rule that says what holds; null where none matched. */
function ruleOf({ effect, rules }: Decision): string | null {
  const rule = rules.find((one) => one.effect === effect)
  return rule ? `${rule.policy}/${rule.rule}` : null
}

/** What was asked for as a record would show it, without the names that every request makes anew. */
function lineOf({ payload = {} }: NewRecord): string {
  const { requestId: _requestId, command: _command, step: _step, stepId: _stepId, ...asked } = payload
  return `${JSON.stringify(redact(asked))}\n`
}
