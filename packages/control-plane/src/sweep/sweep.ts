import { type Log, sleep } from '@airlock/std'

const EVERY_MS = 1000

/** What is done by the clock. */
export interface SweepRow {
  readonly name: string
  /** Each round is a second long, or longer when it has much to do. */
  readonly everyRounds: number
  /** Skipped while it says no. */
  readonly when?: () => boolean
  readonly run: () => Promise<void>
}

/** Goes over its rows once a second, in their order: what is due ends, what was put off is written. Nothing is kept only in timers. */
export class Sweep {
  readonly #rows: readonly SweepRow[]
  readonly #log: Log
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(rows: readonly SweepRow[], log: Log) {
    this.#rows = rows
    this.#log = log
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    for (let round = 1; !this.#stop.signal.aborted; round++) {
      for (const row of this.#rows)
        if (round % row.everyRounds === 0 && (row.when?.() ?? true)) await this.#attempt(row)
      // Woken early only by the stop, which the loop sees.
      await sleep(EVERY_MS, this.#stop.signal).catch(() => undefined)
    }
  }

  /** One row that fails holds up none of the others. */
  async #attempt({ name, run }: SweepRow): Promise<void> {
    try {
      await run()
    } catch (error) {
      this.#log.warn('a part of the sweep failed', { name, error })
    }
  }
}
