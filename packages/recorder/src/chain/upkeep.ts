import type { Clock, Log } from '@airlock/std'
import type { Archive } from './archive.ts'
import type { Chain } from './chain.ts'
import type { Floods } from '../floods.ts'
import type { Retention } from './retention.ts'
import type { Segment } from './segments.ts'
import type { Tally } from '../reading/tally.ts'
import { PastVerifier } from './verify-past.ts'

const EVERY_MS = 60_000
/** A segment is ended at this age, so that it can be dropped by its age. */
const SEAL_AFTER_MS = 24 * 3600 * 1000

interface Kept {
  readonly archive: Archive
  readonly chain: Chain
}

interface UpkeepOptions {
  readonly retention: Retention
  readonly floods: Floods
  readonly clock: Clock
  readonly log: Log
}

interface Sealed {
  readonly archive: Archive
  readonly segment: Segment
  readonly tally: Tally
}

/** Looks after what is written: indexes what was sealed, verifies it again, drops what is too old. One thing at a time. */
export class Upkeep {
  readonly #options: UpkeepOptions
  readonly #verifiers = new Map<string, PastVerifier>()
  readonly #stop = new AbortController()
  #chains: () => readonly Kept[] = () => []
  #sealed: Sealed[] = []
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #isDue = false

  constructor(options: UpkeepOptions) {
    this.#options = options
  }

  start(chains: () => readonly Kept[]): void {
    this.#chains = chains
    this.#timer = setInterval(() => this.run(), EVERY_MS).unref()
    this.run()
  }

  /** Soon; the one who seals does not wait. */
  sealed(sealed: Sealed): void {
    this.#sealed.push(sealed)
    this.run()
  }

  run(): void {
    this.#isDue = true
    this.#running ??= this.#work().finally(() => (this.#running = undefined))
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#stop.abort()
    await this.#running
  }

  async #work(): Promise<void> {
    while (this.#isDue && !this.#stop.signal.aborted) {
      this.#isDue = false
      await this.#index()
      for (const kept of this.#chains()) {
        if (this.#stop.signal.aborted) return
        await this.#try('evidence could not be looked after', async () => this.#lookAfter(kept))
      }
      // After every segment of every chain, so that what may be dropped does not wait for all the others to be read.
      await this.#try('old evidence could not be dropped', async () => this.#makeRoom())
    }
  }

  /** Where that cannot be done without dropping what just happened, whoever fills it is refused. */
  async #makeRoom(): Promise<void> {
    const { retention, floods, log } = this.#options
    await retention.enforce(this.#chains())
    if (!retention.isFull) return floods.clear()
    const blamed = floods.blame(retention.bytes)
    if (blamed !== undefined)
      log.error('there is no room for more evidence', { refused: blamed, bytes: retention.bytes })
  }

  async #index(): Promise<void> {
    for (const { archive, segment, tally } of this.#sealed.splice(0))
      await this.#try('an index could not be made', async () => archive.seal(segment, tally))
  }

  async #lookAfter(kept: Kept): Promise<void> {
    const { archive, chain } = kept
    const { tenant } = archive.place
    const first = chain.tally.range?.firstTs
    // Or as much ahead: then it is of a clock that has gone back since.
    if (first !== undefined && Math.abs(this.#options.clock.now() - Date.parse(first)) > SEAL_AFTER_MS)
      await chain.seal()
    const { isDone, broken } = await this.#verifierOf(kept).advance(this.#stop.signal)
    if (!isDone) this.#isDue = true
    if (!broken) return
    this.#options.log.error('older evidence does not verify', { tenant, ...broken })
    const payload = { at: broken.at, reason: broken.reason }
    chain.owe({ tenant, actor: 'system', point: 'audit.broken', status: 'failed', payload })
  }

  #verifierOf(kept: Kept): PastVerifier {
    const { tenant } = kept.archive.place
    const known = this.#verifiers.get(tenant)
    if (known) return known
    const { clock, retention } = this.#options
    const fresh = new PastVerifier({ ...kept, clock, isUrgent: () => retention.isOver })
    this.#verifiers.set(tenant, fresh)
    return fresh
  }

  /** What fails here is tried again within a minute; nothing that is granted waits for it. */
  async #try(what: string, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#options.log.warn(what, { error })
    })
  }
}
