import { isAirlockError, type NodeCommand } from '@airlock/contract'
import { sleep } from '@airlock/std'
import type { Context } from '../app/context.ts'

const RETRY_MS = 250
const RETRY_MAX_MS = 5_000

export interface Run {
  readonly id: string
  readonly sandbox: string
}

/** Where the ends of commands, or of steps, are written and recorded. */
export interface Book<R extends Run, E extends Partial<R>> {
  read(row: R): Promise<R | undefined>
  isRunning(row: R): boolean
  /** What its row will say of an end; undefined is one that the data plane does not know any more. */
  endOf(row: R, node: NodeCommand | undefined): Promise<E>
  /** The first end counts: undefined when it has one already. */
  write(row: R, end: E): Promise<R | undefined>
  /** Never waits. */
  record(row: R, why: 'result' | 'sandbox-ended'): void
}

interface Watched<R> {
  readonly sandbox: string
  readonly over: Promise<R>
  readonly end: (row: R) => void
  readonly stop: AbortController
}

/**
 * Follows everything of one kind that runs, commands or steps, to its end and writes the result. A data plane that goes
 * away is asked again when it is back; what it does not know any more has no result. Ends with the sandbox at the latest.
 */
export class CommandWatch<R extends Run, E extends Partial<R>> {
  readonly #context: Pick<Context, 'dataPlane' | 'log'>
  readonly #book: Book<R, E>
  readonly #watched = new Map<string, Watched<R>>()
  /** Written as running, but not yet with the data plane: absent there means nothing. */
  readonly #starting = new Map<string, Promise<unknown>>()

  constructor(context: Pick<Context, 'dataPlane' | 'log'>, book: Book<R, E>) {
    this.#context = context
    this.#book = book
  }

  /** Keeps everybody from judging it while it starts. */
  async whileStarting<T>(id: string, start: () => Promise<T>): Promise<T> {
    const started = start()
    this.#starting.set(id, started)
    try {
      return await started
    } finally {
      this.#starting.delete(id)
    }
  }

  isStarting(id: string): boolean {
    return this.#starting.has(id)
  }

  /** Resolves when it is with the data plane and its record on disk, or was refused. */
  async begun(id: string): Promise<void> {
    // How that went is told to who asked for it.
    await this.#starting.get(id)?.catch(() => undefined)
  }

  /** Follows it, if nobody does yet. Resolves with the row as it ended. */
  async watch(row: R): Promise<R> {
    const known = this.#watched.get(row.id)
    if (known) return known.over
    const { promise: over, resolve: end } = Promise.withResolvers<R>()
    const watched = { sandbox: row.sandbox, over, end, stop: new AbortController() }
    this.#watched.set(row.id, watched)
    void this.#follow(row, watched)
    return over
  }

  /** For the sweep: follows what should be followed and is not. */
  ensure(row: R): void {
    if (!this.#starting.has(row.id)) void this.watch(row)
  }

  /** Somebody who followed it himself saw its end. When it cannot be written, he gets it all the same. */
  async finish(row: R, end: E): Promise<R> {
    const last = await this.#write(row, end)
    this.#watched.get(row.id)?.stop.abort()
    this.#settle(last)
    return last
  }

  /** The sandbox is gone and took these with it; what ended before has its result. */
  sandboxEnded(sandbox: string, lost: readonly R[]): void {
    for (const row of lost) {
      this.#book.record(row, 'sandbox-ended')
      this.#settle(row)
    }
    for (const [, watched] of this.#watched) if (watched.sandbox === sandbox) watched.stop.abort()
  }

  /** Follows nothing any more; the next start goes on. */
  stop(): void {
    for (const [, watched] of this.#watched) watched.stop.abort()
  }

  async #follow(row: R, watched: Watched<R>): Promise<void> {
    await this.begun(row.id)
    let pauseMs = RETRY_MS
    while (!watched.stop.signal.aborted) {
      try {
        const node = await this.#ask(row, watched.stop.signal)
        pauseMs = RETRY_MS
        if (node !== 'running') return this.#settle(await this.#write(row, await this.#book.endOf(row, node)))
      } catch (error) {
        if (watched.stop.signal.aborted) break
        if (!(await this.#isRunning(row))) break
        // An end of its sandbox is often seen here first; the retry finds it written.
        const level = pauseMs === RETRY_MS ? 'info' : 'warn'
        this.#context.log[level]('lost track of a running command; retrying', { id: row.id, error })
        // Woken early only by the stop, which the loop sees.
        await sleep(pauseMs, watched.stop.signal).catch(() => undefined)
        pauseMs = Math.min(pauseMs * 2, RETRY_MAX_MS)
      }
    }
    await this.#leave(row, watched)
  }

  /** How it ended; undefined when the data plane has the sandbox and does not know it. */
  async #ask(row: R, signal: AbortSignal): Promise<NodeCommand | 'running' | undefined> {
    try {
      const node = await this.#context.dataPlane.wait({ sandbox: row.sandbox, command: row.id }, signal)
      return node && node.state !== 'running' ? node : 'running'
    } catch (error) {
      // A sandbox that is gone is for the sweep to judge.
      if (isForgotten(error)) return undefined
      throw error
    }
  }

  /** The first end counts. When it cannot be written, callers get it all the same and the sweep comes back to it. */
  async #write(row: R, end: E): Promise<R> {
    try {
      const ended = await this.#book.write(row, end)
      // Whoever waits is answered first: the row says that the record is owed, also to the next life.
      if (ended) setImmediate(() => this.#book.record(ended, 'result'))
      return ended ?? (await this.#book.read(row)) ?? { ...row, ...end }
    } catch (error) {
      this.#context.log.error('a result cannot be written yet', { id: row.id, error })
      return { ...row, ...end }
    }
  }

  /** Stopped, because the sandbox ended or we do: whoever waits gets what the row says. */
  async #leave(row: R, watched: Watched<R>): Promise<void> {
    if (this.#watched.get(row.id) !== watched) return
    this.#settle((await this.#book.read(row).catch(() => undefined)) ?? row)
  }

  #settle(row: R): void {
    const watched = this.#watched.get(row.id)
    this.#watched.delete(row.id)
    watched?.end(row)
  }

  /** As far as the store says, and when it cannot be asked. */
  async #isRunning(row: R): Promise<boolean> {
    const now = await this.#book.read(row).catch(() => row)
    return now !== undefined && this.#book.isRunning(now)
  }
}

export function isForgotten(error: unknown): boolean {
  return isAirlockError(error) && error.code === 'command_not_found'
}
