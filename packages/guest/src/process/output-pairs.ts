import type { FifoPool } from './fifo-pool.ts'
import { OutputPair } from './output-pair.ts'

/** Pairs that processes left behind still hold, read on and dropped. */
const HELD_LIMIT = 8
const FREE_LIMIT = 2

/** The pairs of one session. A session in which nothing is left behind needs two, for ever. */
export class OutputPairs {
  readonly #fifos: FifoPool
  readonly #free: OutputPair[] = []
  readonly #held = new Set<OutputPair>()
  #isOpen = true

  constructor(fifos: FifoPool) {
    this.#fifos = fifos
  }

  async take(): Promise<OutputPair> {
    const free = this.#free.pop()
    if (free) return free
    const [stdout = '', stderr = ''] = await this.#fifos.take(2)
    return new OutputPair(stdout, stderr)
  }

  giveBack(pair: OutputPair): void {
    const isFree = pair.release(() => {
      if (this.#held.delete(pair)) this.#keep(pair)
    })
    if (isFree) this.#keep(pair)
    else this.#hold(pair)
  }

  destroy(): void {
    this.#isOpen = false
    for (const pair of [...this.#free.splice(0), ...this.#held]) pair.destroy()
    this.#held.clear()
  }

  #keep(pair: OutputPair): void {
    if (this.#isOpen && this.#free.length < FREE_LIMIT) this.#free.push(pair)
    else pair.destroy()
  }

  #hold(pair: OutputPair): void {
    if (!this.#isOpen) return pair.destroy()
    this.#held.add(pair)
    const [oldest] = this.#held
    if (this.#held.size <= HELD_LIMIT || !oldest) return
    this.#held.delete(oldest)
    oldest.destroy()
  }
}
