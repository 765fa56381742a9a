import { setTimeout as delay } from 'node:timers/promises'

/** Sleeps; rejects with the signal's reason when aborted. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch((error: unknown) => {
    throw signal?.aborted ? signal.reason : error
  })
}

/** A signal that aborts when any of the given ones does, or after `ms`. */
export function deadline(ms: number, signal?: AbortSignal): AbortSignal {
  const timeout = AbortSignal.timeout(ms)
  return signal ? AbortSignal.any([signal, timeout]) : timeout
}

/** Asks `probe` until it answers something other than undefined; rejects when `signal` aborts. */
export async function waitFor<T>(
  probe: () => Promise<T | undefined> | T | undefined,
  options: { signal: AbortSignal; everyMs: number },
): Promise<T> {
  for (;;) {
    options.signal.throwIfAborted()
    const answer = await probe()
    if (answer !== undefined) return answer
    await sleep(options.everyMs, options.signal)
  }
}
