import { signDropped } from '@airlock/audit'
import type { Clock, Log } from '@airlock/std'
import type { Archive } from './archive.ts'
import type { Chain } from './chain.ts'
import { readForward, type Segment } from './segments.ts'
import { parseStored } from './stored-line.ts'

const HOUR_MS = 3600 * 1000
const DAY_MS = 24 * HOUR_MS

export interface RetentionRules {
  readonly days: number
  /** Of all chains together. */
  readonly maxBytes: number
  /** What is younger is never dropped for its size. */
  readonly minAgeHours: number
}

interface Kept {
  readonly archive: Archive
  readonly chain: Chain
}

type Sealed = Awaited<ReturnType<Archive['outlines']>>['sealed'][number]

/** A chain with what it holds, oldest first. */
interface Load extends Kept {
  readonly sealed: Sealed[]
  bytes: number
}

/**
 * Drops what is too old or too much: only whole segments that are sealed and were found good, from the oldest on. Beyond
 * the bound on size the largest chain loses first, so that a tenant who records much does not push out the others, and
 * nobody pushes out what just happened.
 */
export class Retention {
  readonly rules: RetentionRules
  readonly #clock: Clock
  readonly #log: Log
  #isOver = false
  #bytes = 0
  #isFull = false

  constructor(options: { readonly rules: RetentionRules; readonly clock: Clock; readonly log: Log }) {
    this.rules = options.rules
    this.#clock = options.clock
    this.#log = options.log
  }

  /** There is more than may be kept, and what could be dropped waits to be verified. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** The bound is reached, and what is kept is too young to be dropped, or is never dropped because it does not verify. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Of all chains, when it was enforced last. */
  get bytes(): number {
    return this.#bytes
  }

  async enforce(chains: Iterable<Kept>): Promise<void> {
    const loads: Load[] = []
    for (const kept of chains) {
      try {
        await this.#recordDrop(kept)
        const load = await loadOf(kept)
        loads.push(load)
        await this.#dropOld(load)
      } catch (error) {
        // One chain that fails holds up none of the others.
        this.#log.warn('old evidence of a tenant could not be dropped', { tenant: kept.archive.place.tenant, error })
      }
    }
    await this.#dropLargest(loads)
  }

  async #dropOld(load: Load): Promise<void> {
    const now = this.#clock.now()
    const before = now - this.rules.days * DAY_MS
    const times = timesOf(load, now)
    const kept = load.sealed.findIndex((one, i) => !isDroppable(load, one) || (times[i] ?? now) >= before)
    const count = kept < 0 ? load.sealed.length : kept
    if (count > 0) await this.#drop(load, { count, why: 'age' })
  }

  /** Each chain at most once, for every drop leaves a record. */
  async #dropLargest(loads: readonly Load[]): Promise<void> {
    const now = this.#clock.now()
    const young = now - this.rules.minAgeHours * HOUR_MS
    const plans = loads.map((load) => ({ load, times: timesOf(load, now), bytes: load.bytes, count: 0 }))
    const isYoung = ({ times, count }: (typeof plans)[number]): boolean => (times[count] ?? now) > young
    const total = (): number => plans.reduce((sum, { bytes }) => sum + bytes, 0)
    while (total() > this.rules.maxBytes) {
      const [largest] = plans
        .filter((plan) => !isYoung(plan) && isDroppable(plan.load, plan.load.sealed[plan.count]))
        .sort((a, b) => b.bytes - a.bytes)
      if (!largest) break
      largest.bytes -= largest.load.sealed[largest.count]?.bytes ?? 0
      largest.count += 1
    }
    this.#bytes = total()
    this.#isOver = this.#bytes > this.rules.maxBytes
    // What is old enough and only waits to be verified makes room soon. What does not verify never does.
    this.#isFull = this.#isOver && plans.every((plan) => isYoung(plan) || isStuck(plan.load, plan.count))
    for (const { load, count } of plans) if (count > 0) await this.#drop(load, { count, why: 'size' })
  }

  /** The head that vouches for what goes is the one with which what stays begins. */
  async #drop(load: Load, what: { readonly count: number; readonly why: 'age' | 'size' }): Promise<void> {
    const { archive } = load
    const gone = load.sealed.slice(0, what.count)
    const last = gone.at(-1)
    const vouching = last && (await firstHead(last.next))
    if (!vouching || vouching.seq !== last.lastSeq || last.lastTs === undefined) return
    const { tenant, keys } = archive.place
    const bytes = gone.reduce((sum, one) => sum + one.bytes, 0)
    const before = archive.dropped?.dropped
    const dropped = {
      newest: last.lastTs,
      segments: gone.length + (before?.segments ?? 0),
      bytes: bytes + (before?.bytes ?? 0),
    }
    const ts = new Date(this.#clock.now()).toISOString()
    const head = signDropped(keys.signing, { tenant, seq: vouching.seq, hash: vouching.hash, ts, dropped })
    await archive.drop(head)
    load.sealed.splice(0, what.count)
    load.bytes -= bytes
    this.#log.info('evidence was dropped', { tenant, upTo: head.seq, segments: gone.length, bytes, why: what.why })
    await this.#recordDrop(load)
  }

  /** As often as it takes: the statement says that the record is owed until the chain has it. */
  async #recordDrop({ archive, chain }: Kept): Promise<void> {
    const head = archive.unrecorded
    if (!head || chain.broken !== undefined) return
    const { tenant } = archive.place
    const payload = { upTo: head.seq, hash: head.hash, total: head.dropped, rules: { ...this.rules } }
    try {
      await chain.appendOwn({ tenant, actor: 'system', point: 'audit.drop', status: 'done', payload })
      await archive.setRecorded(head)
    } catch (error) {
      // Tried again within a minute. On a full disk it is the next drop that makes room for it.
      this.#log.warn('a drop of evidence could not be recorded yet', { tenant, error })
    }
  }
}

function isDroppable({ archive }: Load, of: Sealed | undefined): boolean {
  return of !== undefined && of.lastTs !== undefined && of.lastSeq <= archive.verification.verifiedTo
}

/** The oldest segment that is left after so many were dropped does not verify. */
function isStuck({ archive, sealed }: Load, dropped: number): boolean {
  const { state, verifiedTo } = archive.verification
  return state === 'broken' && (sealed[dropped]?.lastSeq ?? 0) > verifiedTo
}

/**
 * When each sealed segment was written to last: by its file, not by its records. A file of the future is of a clock that was ahead, and
 * counts as the next one that is not; one that is older than those before it is of a clock that was behind, and counts as they do.
 */
function timesOf({ sealed }: Load, now: number): readonly number[] {
  let next = now
  const bounded = sealed.toReversed().map(({ writtenAt }) => (next = writtenAt > now ? next : writtenAt))
  let latest = 0
  return bounded.toReversed().map((at) => (latest = Math.max(latest, at)))
}

async function loadOf(kept: Kept): Promise<Load> {
  const { sealed, openBytes } = await kept.archive.outlines(kept.chain)
  return { ...kept, sealed: [...sealed], bytes: sealed.reduce((sum, { bytes }) => sum + bytes, openBytes) }
}

/** The line with which a segment begins. */
async function firstHead({ path }: Segment) {
  for await (const line of readForward(path, Infinity)) {
    const stored = parseStored(line)
    return stored?.type === 'head' ? stored.head : undefined
  }
  return undefined
}
