import type { OutputItem } from '@airlock/wire'

/** Whoever asked for it reads it at once, or not at all. */
const CLAIM_MS = 1_000

interface Open {
  readonly output: AsyncIterable<OutputItem>
  readonly letGo: () => void
  readonly timer: NodeJS.Timeout
}

/**
 * The output of commands or steps that were just started: it comes with the answer of the data plane, so that a short one
 * costs one call instead of three. The first who follows it takes it; what nobody takes is let go.
 */
export class OpenOutputs {
  readonly #open = new Map<string, Open>()

  hold(id: string, output: AsyncIterable<OutputItem>, letGo: () => void): void {
    const timer = setTimeout(() => {
      this.#open.delete(id)
      letGo()
    }, CLAIM_MS)
    this.#open.set(id, { output, letGo, timer })
  }

  take(id: string): Omit<Open, 'timer'> | undefined {
    const open = this.#open.get(id)
    this.#open.delete(id)
    clearTimeout(open?.timer)
    return open
  }
}
