import type { ApprovalEvent } from '@airlock/contract'
import type { Clock } from '@airlock/std'
import type { ApprovalNews } from './news.ts'
import { listApprovals, listChanged, type StoredApproval } from '../store/approvals.ts'
import type { Store } from '../store/engine/store.ts'
import { toApproval } from './nouns.ts'

/** What another node did is seen within this time; what this one does, at once. */
const LOOK_MS = 1000
/** A row may be written by a clock, or by a transaction, that is behind. */
const OVERLAP_MS = 10_000
const PAGE = 200

interface FeedWorld {
  readonly store: Store
  readonly clock: Clock
  readonly news: ApprovalNews
}

export interface FeedOptions {
  readonly tenant: string
  /** Null is every agent. */
  readonly agents: readonly string[] | null
  readonly signal: AbortSignal
}

/**
 * What is pending, then every change, until the signal aborts. The store is what is told: a change is told once, and when several came
 * between two looks, the last of them.
 */
export async function* approvalFeed(world: FeedWorld, options: FeedOptions): AsyncGenerator<ApprovalEvent> {
  const feed = new Feed(world, options)
  const looks = new Looks(world.news, options.tenant)
  try {
    yield* feed.pending()
    for (;;) {
      await looks.next(options.signal)
      if (options.signal.aborted) return
      yield* feed.changes()
    }
  } finally {
    looks.end()
  }
}

class Feed {
  readonly #world: FeedWorld
  readonly #options: FeedOptions
  /** What was told of those that changed lately. */
  readonly #told = new Map<string, number>()
  #since: number

  constructor(world: FeedWorld, options: FeedOptions) {
    this.#world = world
    this.#options = options
    this.#since = world.clock.now()
  }

  /** Oldest first. */
  async *pending(): AsyncGenerator<ApprovalEvent> {
    const { store } = this.#world
    const { tenant, agents } = this.#options
    const filter = { tenant, state: 'pending', agents, before: undefined, limit: PAGE } as const
    const rows = await store.query((db) => listApprovals(db, filter))
    for (const row of rows.toReversed()) {
      const event = this.#tell(row)
      if (event.event === 'pending') yield event
    }
  }

  async *changes(): AsyncGenerator<ApprovalEvent> {
    const from = this.#since - OVERLAP_MS
    this.#since = this.#world.clock.now()
    for await (const row of this.#changedSince(from)) if (this.#isNews(row)) yield this.#tell(row)
    for (const [id, changedAt] of this.#told) if (changedAt < from - OVERLAP_MS) this.#told.delete(id)
  }

  async *#changedSince(from: number): AsyncGenerator<StoredApproval> {
    let after: Pick<StoredApproval, 'changedAt' | 'id'> = { changedAt: from, id: '' }
    for (;;) {
      const asked = { tenant: this.#options.tenant, after, limit: PAGE }
      const rows = await this.#world.store.query((db) => listChanged(db, asked))
      yield* rows
      const last = rows.at(-1)
      if (!last || rows.length < PAGE) return
      after = last
    }
  }

  #isNews({ id, agent, changedAt }: StoredApproval): boolean {
    const { agents } = this.#options
    const isSeen = agents === null || (agent !== null && agents.includes(agent))
    return isSeen && this.#told.get(id) !== changedAt
  }

  #tell(row: StoredApproval): ApprovalEvent {
    this.#told.set(row.id, row.changedAt)
    const approval = toApproval(row, this.#world.clock.now())
    return { event: approval.state === 'pending' ? 'pending' : 'answered', approval }
  }
}

/** When to look again: when something happened here, or after a while. */
class Looks {
  readonly #unsubscribe: () => void
  #isDue = false
  #wake: (() => void) | undefined

  constructor(news: ApprovalNews, tenant: string) {
    this.#unsubscribe = news.subscribe((row) => {
      if (row.tenant !== tenant) return
      this.#isDue = true
      this.#wake?.()
    })
  }

  async next(signal: AbortSignal): Promise<void> {
    if (!this.#isDue && !signal.aborted)
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer)
          signal.removeEventListener('abort', done)
          resolve()
        }
        const timer = setTimeout(done, LOOK_MS)
        signal.addEventListener('abort', done, { once: true })
        this.#wake = done
      })
    this.#isDue = false
    this.#wake = undefined
  }

  end(): void {
    this.#unsubscribe()
  }
}
