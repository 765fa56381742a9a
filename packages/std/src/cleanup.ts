/**
 * Undo as a value. Each step of a multi-step start adds its compensation; on failure they run in reverse
 * order, all of them, even when one fails. On success `release()` drops them.
 */
export class Cleanup {
  #undos: { name: string; undo: () => Promise<void> | void }[] = []

  add(name: string, undo: () => Promise<void> | void): void {
    this.#undos.push({ name, undo })
  }

  release(): void {
    this.#undos = []
  }

  /** Runs what was added, newest first. Returns the failures: the caller decides who hears of them. */
  async run(): Promise<readonly CleanupFailure[]> {
    const undos = this.#undos.toReversed()
    this.#undos = []
    const failures: CleanupFailure[] = []
    for (const { name, undo } of undos) {
      try {
        await undo()
      } catch (cause) {
        failures.push({ name, cause })
      }
    }
    return failures
  }
}

export interface CleanupFailure {
  readonly name: string
  readonly cause: unknown
}
