import { ChainVerifier } from '@airlock/audit'
import { type Clock, sleep } from '@airlock/std'
import type { Archive } from './archive.ts'
import type { Chain } from './chain.ts'
import { isCode, readForward, type Segment } from './segments.ts'
import { exportLine } from './stored-line.ts'

/** It works this long at a time, then rests so many times as long: what is written comes first. */
const WORK_MS = 5
const REST = { usual: 9, hurried: 1 }
/** What was found good is read again this often: disks forget, and people change files. */
const AGAIN_MS = 24 * 3600 * 1000

interface Broken {
  readonly at: number
  readonly reason: string
}

interface Advance {
  /** There is nothing more to read now. */
  readonly isDone: boolean
  readonly broken?: Broken
}

/** Reads the sealed segments of one chain again, slowly, and says whether they still verify. */
export class PastVerifier {
  readonly #archive: Archive
  readonly #chain: Chain
  readonly #clock: Clock
  readonly #isUrgent: () => boolean
  #verifier: ChainVerifier | undefined
  #startedAt = 0
  /** This round found what is broken, and reads nothing behind it. */
  #isOver = false

  constructor(of: {
    readonly archive: Archive
    readonly chain: Chain
    readonly clock: Clock
    /** Somebody waits for it. */
    readonly isUrgent?: () => boolean
  }) {
    this.#archive = of.archive
    this.#chain = of.chain
    this.#clock = of.clock
    this.#isUrgent = of.isUrgent ?? (() => false)
  }

  /** The next sealed segment that this round has not read yet. Says what broke the first time that it is found. */
  async advance(signal: AbortSignal): Promise<Advance> {
    const verifier = this.#round(this.#clock.now())
    if (!verifier) return { isDone: true }
    const { segments } = await this.#archive.kept(this.#chain.snapshot)
    for (const [i, segment] of segments.entries()) {
      const next = segments[i + 1]
      // What is written to is verified by whoever writes.
      if (!next) break
      if (next.firstSeq - 1 <= verifier.position.seq) continue
      const broken = await this.#follow(verifier, { segment, next, signal }).catch((error: unknown) => {
        // Gone meanwhile. The verifier stands in the middle of a segment, so it is of no more use.
        this.#verifier = undefined
        if (isCode(error, 'ENOENT')) throw error
        return { at: verifier.position.seq + 1, reason: `the segment cannot be read: ${String(error)}` }
      })
      if (signal.aborted) return { isDone: true }
      if (broken) return { isDone: true, ...this.#setBroken(broken) }
      this.#setGood(verifier.position.seq)
      return { isDone: false }
    }
    return { isDone: true }
  }

  /** A new round every day, and from the beginning when what was dropped has overtaken it. Undefined after a break. */
  #round(now: number): ChainVerifier | undefined {
    const { start, place } = this.#archive
    const isRead = this.#verifier && this.#verifier.position.seq >= start.seq
    const isDue = now - this.#startedAt >= AGAIN_MS || !(this.#isOver || isRead)
    if (!isDue) return this.#isOver ? undefined : this.#verifier
    this.#startedAt = now
    this.#isOver = false
    this.#verifier = new ChainVerifier(place.keys.public, { from: start })
    return this.#verifier
  }

  /** To the head with which the next segment begins: it vouches for all of this one. */
  async #follow(
    verifier: ChainVerifier,
    of: { readonly segment: Segment; readonly next: Segment; readonly signal: AbortSignal },
  ): Promise<Broken | undefined> {
    let began = performance.now()
    for await (const line of sealedLines(of)) {
      const broken = verifier.push(line)
      if (broken) return { at: broken.brokenAt, reason: broken.reason }
      const worked = performance.now() - began
      if (worked < WORK_MS) continue
      await sleep(worked * (this.#isUrgent() ? REST.hurried : REST.usual), of.signal).catch(() => undefined)
      if (of.signal.aborted) return undefined
      began = performance.now()
    }
    const missing = of.next.firstSeq - 1
    if (verifier.position.seq === missing) return undefined
    return { at: verifier.position.seq + 1, reason: `the segment ends before ${missing}` }
  }

  /** What was broken stays so until the very record is found good. */
  #setGood(seq: number): void {
    const { verification } = this.#archive
    const { broken } = verification
    if (broken && seq < broken.at) return
    const verifiedTo = Math.max(seq, broken ? 0 : verification.verifiedTo)
    this.#archive.verification = { state: 'good', verifiedTo, at: this.#clock.now(), broken: null }
  }

  #setBroken(broken: Broken): { readonly broken?: Broken } {
    this.#isOver = true
    const before = this.#archive.verification
    const verifiedTo = Math.min(before.verifiedTo, broken.at - 1)
    this.#archive.verification = { state: 'broken', verifiedTo, at: this.#clock.now(), broken }
    return before.broken?.at === broken.at ? {} : { broken }
  }
}

/** All of a segment and the first line of the next. */
async function* sealedLines(of: { readonly segment: Segment; readonly next: Segment }): AsyncGenerator<string> {
  for await (const line of readForward(of.segment.path, Infinity)) yield exportLine(line)
  for await (const line of readForward(of.next.path, Infinity)) {
    yield exportLine(line)
    return
  }
}
