import { type StoredSandbox, updateUse } from '../store/sandboxes.ts'
import type { Context } from './context.ts'

interface Use {
  readonly lastActiveAt: number
  readonly expiresAt: number
  readonly writtenAt: number
  readonly isWritten: boolean
}

const WRITE_EVERY_MS = 1000
/** A crash may forget this share of a sandbox's time, and never more than a second. */
const FORGET_SHARE = 10

/**
 * Use extends life. Uses are kept here and written at most once a second for each sandbox, so that a busy sandbox does
 * not keep the disk busy; whoever asks for a sandbox's times asks through `current`.
 */
export class Activity {
  readonly #context: Pick<Context, 'store' | 'clock' | 'log'>
  readonly #uses = new Map<string, Use>()

  constructor(context: Pick<Context, 'store' | 'clock' | 'log'>) {
    this.#context = context
  }

  /** A use, now. Never fails: what cannot be written now is written later. */
  async touch(sandbox: StoredSandbox): Promise<void> {
    const use = this.#remember(sandbox, sandbox.ttlMs)
    const everyMs = Math.min(WRITE_EVERY_MS, sandbox.ttlMs / FORGET_SHARE, sandbox.idleMs / FORGET_SHARE)
    if (use.lastActiveAt - use.writtenAt >= everyMs) await this.#writeOrKeep(sandbox.id)
  }

  /** A use that is on disk when this resolves. */
  async extend(sandbox: StoredSandbox, ttlMs: number): Promise<StoredSandbox> {
    this.#remember(sandbox, ttlMs)
    await this.#write(sandbox.id)
    return this.current(sandbox)
  }

  /** The sandbox with its latest uses, written or not. */
  current(sandbox: StoredSandbox): StoredSandbox {
    const use = this.#uses.get(sandbox.id)
    if (!use) return sandbox
    return {
      ...sandbox,
      lastActiveAt: Math.max(sandbox.lastActiveAt, use.lastActiveAt),
      expiresAt: Math.max(sandbox.expiresAt, use.expiresAt),
    }
  }

  async flush(): Promise<void> {
    for (const [id, use] of this.#uses) if (!use.isWritten) await this.#writeOrKeep(id)
  }

  forget(sandbox: string): void {
    this.#uses.delete(sandbox)
  }

  #remember(sandbox: StoredSandbox, ttlMs: number): Use {
    const now = this.#context.clock.now()
    const known = this.current(sandbox)
    const use = {
      lastActiveAt: now,
      expiresAt: Math.min(Math.max(known.expiresAt, now + ttlMs), sandbox.endsAt),
      // The row was read from the store: what it says is written.
      writtenAt: this.#uses.get(sandbox.id)?.writtenAt ?? sandbox.lastActiveAt,
      isWritten: false,
    }
    this.#uses.set(sandbox.id, use)
    return use
  }

  async #writeOrKeep(id: string): Promise<void> {
    try {
      await this.#write(id)
    } catch (error) {
      this.#context.log.warn('a use could not be written yet', { sandbox: id, error })
    }
  }

  async #write(id: string): Promise<void> {
    const use = this.#uses.get(id)
    if (!use) return
    await this.#context.store.query((db) => updateUse(db, id, use))
    // A use that came meanwhile is not written.
    if (this.#uses.get(id) === use) this.#uses.set(id, { ...use, writtenAt: use.lastActiveAt, isWritten: true })
  }
}
