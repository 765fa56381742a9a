import { isAirlockError } from '@airlock/contract'
import { sleep } from '@airlock/std'
import { type CommandEnd, endCommand, findCommand, type StoredCommand } from '../store/commands.ts'
import type { Context } from './context.ts'
import { toCommandEnd } from './nouns.ts'
import type { Receipts } from './receipts.ts'

const RETRY_MS = 250
const RETRY_MAX_MS = 5_000

interface Watched {
  readonly sandbox: string
  readonly over: Promise<StoredCommand>
  readonly end: (row: StoredCommand) => void
  readonly stop: AbortController
}

/**
 * Follows every running command to its end and writes the result. A data plane that goes away is asked again when it is
 * back; a command that it does not know any more is `lost`. Ends with the sandbox at the latest.
 */
export class CommandWatch {
  readonly #context: Context
  readonly #receipts: Receipts
  readonly #watched = new Map<string, Watched>()
  /** Written as running, but not yet with the data plane: absent there means nothing. */
  readonly #starting = new Set<string>()

  constructor(context: Context, receipts: Receipts) {
    this.#context = context
    this.#receipts = receipts
  }

  /** Keeps the sweep from judging a command while it starts. */
  async whileStarting<T>(id: string, start: () => Promise<T>): Promise<T> {
    this.#starting.add(id)
    try {
      return await start()
    } finally {
      this.#starting.delete(id)
    }
  }

  /** Follows it, if nobody does yet. Resolves with the row as it ended. */
  async watch(command: StoredCommand): Promise<StoredCommand> {
    const known = this.#watched.get(command.id)
    if (known) return known.over
    const { promise: over, resolve: end } = Promise.withResolvers<StoredCommand>()
    const watched = { sandbox: command.sandbox, over, end, stop: new AbortController() }
    this.#watched.set(command.id, watched)
    void this.#follow(command, watched)
    return over
  }

  /** For the sweep: follows what should be followed and is not. */
  ensure(command: StoredCommand): void {
    if (!this.#starting.has(command.id)) void this.watch(command)
  }

  /** The sandbox is gone and took these with it; what ended before has its result. */
  sandboxEnded(sandbox: string, lost: readonly StoredCommand[]): void {
    for (const command of lost) {
      this.#receipts.commandEnded(command, 'sandbox-ended')
      this.#settle(command)
    }
    for (const [, watched] of this.#watched) if (watched.sandbox === sandbox) watched.stop.abort()
  }

  /** Follows nothing any more; the next start goes on. */
  stop(): void {
    for (const [, watched] of this.#watched) watched.stop.abort()
  }

  async #follow(command: StoredCommand, watched: Watched): Promise<void> {
    const of = { sandbox: command.sandbox, command: command.id }
    let pauseMs = RETRY_MS
    while (!watched.stop.signal.aborted) {
      try {
        const node = await this.#context.dataPlane.wait(of, watched.stop.signal)
        pauseMs = RETRY_MS
        if (node && node.state !== 'running') return await this.#end(command, toCommandEnd(node))
      } catch (error) {
        if (watched.stop.signal.aborted) break
        if (isForgotten(error)) return await this.#end(command, this.#lost(command))
        if (!(await this.#isRunning(command))) break
        this.#context.log.warn('a running command cannot be followed now', { command: command.id, error })
        // Woken early only by the stop, which the loop sees.
        await sleep(pauseMs, watched.stop.signal).catch(() => undefined)
        pauseMs = Math.min(pauseMs * 2, RETRY_MAX_MS)
      }
    }
    await this.#leave(command, watched)
  }

  /** The first end counts. When it cannot be written, callers get it all the same and the sweep comes back to it. */
  async #end(command: StoredCommand, end: CommandEnd): Promise<void> {
    const { store, failpoint, log } = this.#context
    try {
      const ended = await store.query((db) => endCommand(db, command.id, end))
      if (ended) {
        await failpoint('command.result-written')
        this.#receipts.commandEnded(ended, 'result')
      }
      this.#settle(ended ?? (await this.#read(command)) ?? { ...command, ...end })
    } catch (error) {
      log.error('the result of a command cannot be written yet', { command: command.id, error })
      this.#settle({ ...command, ...end })
    }
  }

  /** Stopped, because the sandbox ended or we do: whoever waits gets what the row says. */
  async #leave(command: StoredCommand, watched: Watched): Promise<void> {
    if (this.#watched.get(command.id) !== watched) return
    const row = await this.#read(command).catch(() => undefined)
    this.#settle(row ?? command)
  }

  #settle(row: StoredCommand): void {
    const watched = this.#watched.get(row.id)
    this.#watched.delete(row.id)
    watched?.end(row)
  }

  /** As far as the store says, and when it cannot be asked. */
  async #isRunning(command: StoredCommand): Promise<boolean> {
    const row = await this.#read(command).catch(() => command)
    return row?.state === 'running'
  }

  async #read(command: StoredCommand): Promise<StoredCommand | undefined> {
    return this.#context.store.query((db) => findCommand(db, { sandbox: command.sandbox, command: command.id }))
  }

  #lost(command: StoredCommand): CommandEnd {
    const { exitCode, signal, timedOut, truncated, outputBytes, startedAt } = command
    const endedAt = this.#context.clock.now()
    return { state: 'lost', exitCode, signal, timedOut, truncated, outputBytes, startedAt, endedAt }
  }
}

/** The data plane has the sandbox and not the command. A sandbox that is gone is for the sweep to judge. */
function isForgotten(error: unknown): boolean {
  return isAirlockError(error) && error.code === 'command_not_found'
}
