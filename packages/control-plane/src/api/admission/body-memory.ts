import type { ServerResponse } from 'node:http'
import { AirlockError } from '@airlock/contract'
import { orGone } from './or-gone.ts'
import { type Holder, Shares } from './shares.ts'

/** How long an unread body waits for memory. */
const WAIT_MS = 10_000

/** Garbage is collected after bodies held this much: V8 collects nothing while the process is idle. */
const MUCH_BYTES = 16 * 1024 * 1024
const COLLECT_MS = 1_000

interface Waiter {
  readonly holder: Holder
  readonly bytes: number
  readonly begin: () => void
}

/** Memory reserved for a body. */
export interface Memory {
  /** Gives back the rest. Never grows. */
  shrinkTo(bytes: number): void
}

/** For bodies that are small, or in memory already. */
export const NO_MEMORY: Memory = { shrinkTo() {} }

/**
 * Memory for request bodies, over all connections. A body is read once the share of its caller has room for all of it; until
 * then it waits in the buffers of the kernel and of the caller.
 */
export class BodyMemory {
  readonly #shares: Shares
  readonly #waitMs: number
  #held = 0
  #mostHeld = 0
  #isCollecting = false
  /** By caller, oldest first. */
  readonly #waiting = new Map<string, Waiter[]>()

  constructor(bytes: number, waitMs = WAIT_MS) {
    this.#shares = new Shares(bytes)
    this.#waitMs = waitMs
  }

  /** Resolves once there is room. Throws `too_many_requests` after the wait. */
  async take(holder: Holder, bytes: number, response: ServerResponse): Promise<void> {
    const name = `${holder.tenant} ${holder.actor}`
    const before = this.#waiting.get(name)
    if (!before && this.#hold(holder, bytes)) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { holder, bytes, begin: resolve }
    const queue = before ?? []
    this.#waiting.set(name, queue)
    queue.push(waiter)
    const timer = setTimeout(() => reject(noRoom()), this.#waitMs)
    try {
      await orGone(promise, response)
    } catch (error) {
      // Room may have been given in the same moment.
      if (queue.includes(waiter)) queue.splice(queue.indexOf(waiter), 1)
      else this.give(holder, bytes)
      if (queue.length === 0 && this.#waiting.get(name) === queue) this.#waiting.delete(name)
      this.#admit()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  give(holder: Holder, bytes: number): void {
    this.#shares.give(holder, bytes)
    this.#held -= bytes
    this.#admit()
    if (this.#held === 0 && this.#mostHeld >= MUCH_BYTES) this.#collectSoon()
  }

  #hold(holder: Holder, bytes: number): boolean {
    if (this.#shares.take(holder, bytes) !== undefined) return false
    this.#held += bytes
    this.#mostHeld = Math.max(this.#mostHeld, this.#held)
    return true
  }

  #collectSoon(): void {
    if (this.#isCollecting) return
    this.#isCollecting = true
    const collect = (): void => {
      this.#isCollecting = false
      if (this.#held > 0) return
      this.#mostHeld = 0
      globalThis.gc?.()
    }
    setTimeout(collect, COLLECT_MS).unref()
  }

  #admit(): void {
    for (const [name, queue] of this.#waiting) {
      for (let first = queue[0]; first && this.#hold(first.holder, first.bytes); first = queue[0]) {
        queue.shift()
        first.begin()
      }
      if (queue.length === 0) this.#waiting.delete(name)
    }
  }
}

function noRoom(): AirlockError {
  return new AirlockError('too_many_requests', 'Your requests under way hold as much memory as your share allows.', {
    hint: 'Send fewer large bodies at once, or upload as a file.',
    retryAfterS: 1,
  })
}
