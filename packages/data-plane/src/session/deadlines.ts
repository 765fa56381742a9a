import { isAirlockError } from '@airlock/contract'
import { type Clock, type Log, sleep } from '@airlock/std'
import type { CommandRecord } from './command-record.ts'
import type { Patience } from './patience.ts'

const RETRY_MS = 500

export interface DeadlinesOptions {
  readonly clock: Clock
  readonly log: Log
  readonly patience: Patience
  /** Has the guest kill a command. Resolves with its answer, rejects with `timeout` after `ms`. */
  kill(channel: number, ms: number): Promise<void>
  /** The guest did not answer the start of a command. */
  onLostStart(record: CommandRecord): void
  /** The guest was silent for too long, or answered and did not end the command. */
  onOverdue(record: CommandRecord): void
}

interface Watch {
  timer: NodeJS.Timeout
}

/**
 * The second line behind the deadlines that a guest keeps. A command past its deadline is killed through the guest: a guest
 * that was stopped or starved obeys as soon as it runs. Only a guest that does not obey, or answers nothing, is given up.
 */
export class Deadlines {
  readonly #options: DeadlinesOptions
  readonly #watches = new Map<CommandRecord, Watch>()
  readonly #killed = new WeakSet<CommandRecord>()
  #isHeld = false

  constructor(options: DeadlinesOptions) {
    this.#options = options
  }

  /** Waits for the answer to a start, or for the end of what runs. Replaces what it waited for before. */
  watch(record: CommandRecord, awaited: 'start' | 'end'): void {
    this.clear(record)
    if (this.#isHeld) return
    const { clock, patience } = this.#options
    if (awaited === 'start') return this.#arm(record, patience.silenceMs, () => this.#options.onLostStart(record))
    // The end of a command that ended while this process was away is heard when the guest is back: hence the grace from now on.
    const waitMs = Math.max(0, record.deadlineMs - clock.now()) + this.#graceOf(record)
    this.#arm(record, waitMs, (watch) => void this.#kill(record, watch))
  }

  clear(record: CommandRecord): void {
    clearTimeout(this.#watches.get(record)?.timer)
    this.#watches.delete(record)
  }

  /** Whether the host killed it for its deadline. */
  hasKilled(record: CommandRecord): boolean {
    return this.#killed.has(record)
  }

  /** Forgets all watches and takes no new ones until `release`. */
  hold(): void {
    this.#isHeld = true
    for (const record of this.#watches.keys()) this.clear(record)
  }

  release(): void {
    this.#isHeld = false
  }

  #arm(record: CommandRecord, ms: number, due: (watch: Watch) => void): void {
    const watch: Watch = { timer: setTimeout(() => due(watch), ms).unref() }
    this.#watches.set(record, watch)
  }

  async #kill(record: CommandRecord, watch: Watch): Promise<void> {
    const { log, patience } = this.#options
    log.warn('killing a command that is past its deadline', { command: record.id })
    this.#killed.add(record)
    const until = performance.now() + patience.silenceMs
    const isWatched = () => this.#watches.get(record) === watch
    while (isWatched() && !(await this.#isAnswered(record, until - performance.now()))) {
      if (performance.now() >= until) break
      await sleep(RETRY_MS)
    }
    if (!isWatched()) return
    const obeyMs = performance.now() >= until ? 0 : patience.obeyMs
    this.#arm(record, obeyMs, () => this.#options.onOverdue(record))
  }

  /** A refusal is an answer: the end of a command that has ended is on its way. */
  async #isAnswered({ channel }: CommandRecord, ms: number): Promise<boolean> {
    try {
      await this.#options.kill(channel, Math.max(0, ms))
      return true
    } catch (error) {
      return isAirlockError(error) && !UNANSWERED.has(error.code)
    }
  }

  #graceOf({ session }: CommandRecord): number {
    const { commandGraceMs, stepGraceMs } = this.#options.patience
    return session === undefined ? commandGraceMs : stepGraceMs
  }
}

/** `too_many_commands` is our own: the guest already owes too many answers. */
const UNANSWERED: ReadonlySet<string> = new Set(['timeout', 'guest_lost', 'sandbox_ended', 'too_many_commands'])
