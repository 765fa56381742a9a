import { updateUse } from '../store/sandboxes.ts'
import type { Context } from '../app/context.ts'

interface Use {
  readonly lastActiveAt: number
  readonly expiresAt: number
  readonly writtenAt: number
  readonly isWritten: boolean
}

/** What lives as long as it is used: a sandbox, or a session. */
interface Used {
  readonly id: string
  readonly tenant: string
  readonly agent: string
  readonly ttlMs: number
  readonly idleMs: number
  readonly lastActiveAt: number
  readonly expiresAt: number
  readonly endsAt: number
}

type Times = Pick<Used, 'id' | 'lastActiveAt' | 'expiresAt'>

const WRITE_EVERY_MS = 1000
/** A crash may forget this share of a sandbox's time, and never more than a second. */
const FORGET_SHARE = 10

/**
 * Use extends life. Uses are kept here and written at most once a second for each sandbox or session, so that a busy one
 * does not keep the disk busy; whoever asks for the times of one asks through `current`.
 */
export class Activity {
  readonly #context: Pick<Context, 'store' | 'clock' | 'log' | 'heartbeats'>
  readonly #update: typeof updateUse
  readonly #uses = new Map<string, Use>()

  constructor(context: Pick<Context, 'store' | 'clock' | 'log' | 'heartbeats'>, update: typeof updateUse = updateUse) {
    this.#context = context
    this.#update = update
  }

  /** A use, now. Never fails: what cannot be written now is written later. */
  async touch(used: Used): Promise<void> {
    const use = this.#remember(used, used.ttlMs)
    const everyMs = Math.min(WRITE_EVERY_MS, used.ttlMs / FORGET_SHARE, used.idleMs / FORGET_SHARE)
    if (use.lastActiveAt - use.writtenAt >= everyMs) await this.#writeOrKeep(used.id)
  }

  /** A use that is on disk when this resolves. */
  async extend<T extends Used>(used: T, ttlMs: number): Promise<T> {
    this.#remember(used, ttlMs)
    await this.#write(used.id)
    return this.current(used)
  }

  /** The same with its latest uses, written or not. */
  current<T extends Times>(row: T): T {
    const use = this.#uses.get(row.id)
    if (!use) return row
    return {
      ...row,
      lastActiveAt: Math.max(row.lastActiveAt, use.lastActiveAt),
      expiresAt: Math.max(row.expiresAt, use.expiresAt),
    }
  }

  async flush(): Promise<void> {
    for (const [id, use] of this.#uses) if (!use.isWritten) await this.#writeOrKeep(id)
  }

  forget(id: string): void {
    this.#uses.delete(id)
  }

  #remember(used: Used, ttlMs: number): Use {
    const now = this.#context.clock.now()
    this.#context.heartbeats.beat(used)
    const known = this.current(used)
    const use = {
      lastActiveAt: now,
      expiresAt: Math.min(Math.max(known.expiresAt, now + ttlMs), used.endsAt),
      // The row was read from the store: what it says is written.
      writtenAt: this.#uses.get(used.id)?.writtenAt ?? used.lastActiveAt,
      isWritten: false,
    }
    this.#uses.set(used.id, use)
    return use
  }

  async #writeOrKeep(id: string): Promise<void> {
    try {
      await this.#write(id)
    } catch (error) {
      this.#context.log.warn('a use could not be written yet', { id, error })
    }
  }

  async #write(id: string): Promise<void> {
    const use = this.#uses.get(id)
    if (!use) return
    await this.#context.store.query((db) => this.#update(db, id, use))
    // A use that came meanwhile is not written.
    if (this.#uses.get(id) === use) this.#uses.set(id, { ...use, writtenAt: use.lastActiveAt, isWritten: true })
  }
}
