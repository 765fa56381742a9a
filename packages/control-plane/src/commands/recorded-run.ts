import type { Written } from '@airlock/audit'
import type { OutputItem } from '@airlock/wire'
import type { Context } from '../app/context.ts'
import { describeError, type Governed } from '../evidence/evidence.ts'
import { isUncertain } from '../nodes/uncertain.ts'
import type { CommandWatch, Run } from './command-watch.ts'

/** A command or step that was started: how it stands, and its events from the first to its end, to be read once. */
export interface RunHandle<N, E> {
  readonly noun: N
  readonly events: AsyncGenerator<E>
}

/** How one kind of run is written, recorded and given to the node. */
export interface RunToBegin<R> {
  readonly row: R
  readonly deed: Governed
  record(): Promise<Written>
  /** Answers the row that has the caller's id: the new one, or that of an earlier run. */
  insert(): Promise<R>
  /** Deletes the row: the run never began. */
  forget(): Promise<void>
  /** The record must be on disk before the run begins, and not only before its caller hears of it. */
  readonly waitsForDisk: boolean
  /** Resolves once the node has the run, with its output if `give` follows it. */
  give(letGo: AbortSignal): Promise<AsyncIterable<OutputItem> | undefined>
  /** What an error of the node means for the caller. */
  explain(error: unknown): Promise<unknown>
}

export interface Begun<R> {
  readonly row: R
  readonly open: OpenOutput | undefined
}

/** Takes, gives and follows runs of one kind, each at most once. */
export class RecordedRuns<R extends Run, E extends Partial<R>> {
  readonly #context: Pick<Context, 'audit' | 'log'>
  readonly #watch: CommandWatch<R, E>

  constructor(context: Pick<Context, 'audit' | 'log'>, watch: CommandWatch<R, E>) {
    this.#context = context
    this.#watch = watch
  }

  /**
   * Resolves when the node has the run and its record is on disk; from then on it is followed to its end. Its caller follows it until
   * `follow` aborts, the watch from then on and where there is no `follow`. A run that nobody answered for is followed like one that
   * runs. Rejects when it certainly does not run.
   */
  async begin(run: RunToBegin<R>, follow: AbortSignal | undefined): Promise<Begun<R>> {
    return this.#watch.whileStarting(run.row.id, async () => {
      const { first, durable } = await this.#take(run)
      if (first.id !== run.row.id) return { row: first, open: undefined }
      const open = await this.#give(run, durable, follow)
      try {
        await durable
      } catch (error) {
        open?.letGo()
        throw error
      }
      return { row: run.row, open }
    })
  }

  /** The record and the row, at the same time: neither needs the other, and nothing runs before both are written (G7). */
  async #take(run: RunToBegin<R>): Promise<{ readonly first: R; readonly durable: Promise<void> }> {
    const { audit } = this.#context
    const [recorded, written] = await Promise.allSettled([run.record(), run.insert()])
    if (written.status === 'fulfilled' && written.value.id !== run.row.id) {
      audit.note({ ...run.deed, status: 'denied', error: DUPLICATE })
      return { first: written.value, durable: Promise.resolve() }
    }
    if (written.status === 'rejected') {
      if (recorded.status === 'fulfilled')
        audit.note({ ...run.deed, status: 'failed', error: describeError(written.reason) })
      throw written.reason
    }
    if (recorded.status === 'rejected') {
      await this.#forget(run)
      throw recorded.reason
    }
    return { first: run.row, durable: recorded.value.durable }
  }

  async #give(
    run: RunToBegin<R>,
    durable: Promise<void>,
    follow: AbortSignal | undefined,
  ): Promise<OpenOutput | undefined> {
    const { audit, log } = this.#context
    const watch = () => void this.#watch.watch(run.row)
    const abort = new AbortController()
    try {
      if (run.waitsForDisk) await durable
      const output = await run.give(abort.signal)
      if (output) return new OpenOutput(output, { abort, watch, follow })
      watch()
    } catch (error) {
      if (!isUncertain(error)) {
        await this.#forget(run)
        const refusal = await run.explain(error)
        audit.note({ ...run.deed, status: 'failed', error: describeError(refusal) })
        throw refusal
      }
      log.warn('following a run that nobody answered for', { id: run.row.id, error })
      watch()
    }
    return undefined
  }

  async #forget(run: RunToBegin<R>): Promise<void> {
    await run
      .forget()
      .catch((error: unknown) => this.#context.log.warn('a refused run stays in the store', { id: run.row.id, error }))
  }
}

/**
 * Output that comes with the answer of the node, so that a short run costs one call instead of three. Read by one caller; when that
 * caller leaves, the watch follows the run.
 */
export class OpenOutput {
  readonly items: AsyncIterable<OutputItem>
  readonly #options: OpenOptions
  readonly #leave = () => this.letGo()
  #isOver = false

  constructor(items: AsyncIterable<OutputItem>, options: OpenOptions) {
    const { follow } = options
    this.items = items
    this.#options = options
    if (!follow || follow.aborted) this.letGo()
    else follow.addEventListener('abort', this.#leave)
  }

  /** The end of the run was read. */
  close(): void {
    this.#isOver = true
    this.#options.follow?.removeEventListener('abort', this.#leave)
  }

  /** Leaves the run to the watch, unless its end was read. */
  letGo(): void {
    if (this.#isOver) return
    this.close()
    this.#options.abort.abort()
    this.#options.watch()
  }
}

interface OpenOptions {
  readonly abort: AbortController
  readonly watch: () => void
  readonly follow: AbortSignal | undefined
}

const DUPLICATE = { code: 'step_mismatch', message: 'The id belongs to an earlier step, whose result was answered.' }
