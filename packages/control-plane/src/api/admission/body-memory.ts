import type { ServerResponse } from 'node:http'
import { AirlockError } from '@airlock/contract'
import { orGone } from './or-gone.ts'
import { type Holder, Shares } from './shares.ts'

/** How long a body waits, unread, for others to be done with. */
const WAIT_MS = 10_000

/** After so much was held, V8 is told when it is not any more: on its own it collects nothing while it is idle. */
const MUCH_BYTES = 16 * 1024 * 1024
const COLLECT_MS = 1_000

interface Waiter {
  readonly holder: Holder
  readonly bytes: number
  readonly begin: () => void
}

/** Memory that was reserved for a body. */
export interface Memory {
  /** Less was needed. */
  shrinkTo(bytes: number): void
}

/** For what is small, or in memory already. */
export const NO_MEMORY: Memory = { shrinkTo() {} }

/**
 * The memory that bodies take, over all connections. A body is read once there is room for all of it in the share of its
 * caller; until then it waits in the caller's own buffers, and not in ours.
 */
export class BodyMemory {
  readonly #shares: Shares
  readonly #waitMs: number
  #held = 0
  #mostHeld = 0
  #collecting: NodeJS.Timeout | undefined
  /** By caller, first come, first served within each. */
  readonly #waiting = new Map<string, Waiter[]>()

  constructor(bytes: number, waitMs = WAIT_MS) {
    this.#shares = new Shares(bytes)
    this.#waitMs = waitMs
  }

  /** Resolves once there is room. Throws `too_many_requests` when there is none for long. */
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
      // It may have been given room in the same moment.
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
    this.#collecting ??= setTimeout(() => {
      this.#collecting = undefined
      if (this.#held > 0) return
      this.#mostHeld = 0
      globalThis.gc?.()
    }, COLLECT_MS).unref()
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
  return new AirlockError(
    'too_many_requests',
    'You have too much under way: the server keeps no more of it in memory.',
    {
      hint: 'Send fewer large bodies at once, or upload as a file.',
      retryAfterS: 1,
    },
  )
}
