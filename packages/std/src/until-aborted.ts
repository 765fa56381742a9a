/** Waits for work that others wait for too: an abort ends the waiting, not the work. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const waiting = new AbortController()
  // By hand: the SDK runs where promises have no `withResolvers`.
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: waiting.signal })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    waiting.abort()
  }
}
