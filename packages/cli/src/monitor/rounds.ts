import { AirlockError } from '@airlock/sdk'
import { setTimeout as delay } from 'node:timers/promises'
import { Exit } from '../failure.ts'
import type { Interrupts } from '../run/interrupts.ts'

export interface Looking<T> {
  /** Asks the server. */
  readonly look: (signal: AbortSignal) => Promise<T>
  readonly everyMs: number
}

/** What is wrong with it ends everything: nobody has seen anything yet. */
export async function firstLook<T>({ look }: Looking<T>, interrupts: Interrupts): Promise<T> {
  try {
    return await look(interrupts.asked)
  } catch (error) {
    throw interrupts.asked.aborted ? new Exit(interrupts.exitCode) : error
  }
}

/** What is seen each time after that, until the signal; a fault that may pass is seen like the rest. */
export async function* rounds<T>({ look, everyMs }: Looking<T>, signal: AbortSignal): AsyncGenerator<T | AirlockError> {
  for (;;) {
    // Woken early by the signal alone.
    await delay(everyMs, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return
    try {
      yield await look(signal)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof AirlockError && error.retryable)) throw error
      yield error
    }
  }
}

/** Does something with each round, the first included; a fault that may pass is said once. */
export async function eachRound<T>(
  looking: Looking<T>,
  { interrupts, note }: { readonly interrupts: Interrupts; readonly note: (text: string) => void },
  show: (seen: T) => Promise<void>,
): Promise<void> {
  await show(await firstLook(looking, interrupts))
  let problem: string | undefined
  for await (const seen of rounds(looking, interrupts.asked)) {
    const told = problem
    problem = seen instanceof AirlockError ? seen.message : undefined
    if (!(seen instanceof AirlockError)) await show(seen)
    else if (told !== problem) note(`airlock: ${seen.message}`)
  }
}
