import { AirlockError } from '@airlock/contract'

/** How long a guest may keep us waiting for any one thing. */
export const ANSWER_MS = 30_000

/** Does what waits for the guest, for `ms` at most (no limit when undefined); `signal` is the caller's. */
export async function withinDeadline<T>(
  work: (limit: AbortSignal | undefined) => Promise<T>,
  options: { readonly ms: number | undefined; readonly signal?: AbortSignal | undefined },
): Promise<T> {
  if (options.ms === undefined) return await work(options.signal)
  const limit = new AbortController()
  // Not a signal of its own that aborts after a time: it would go on when nobody waits any more.
  const late = setTimeout(
    () => limit.abort(new AirlockError('timeout', 'the sandbox did not answer in time')),
    options.ms,
  )
  const leave = () => limit.abort(options.signal?.reason)
  if (options.signal?.aborted) leave()
  options.signal?.addEventListener('abort', leave)
  try {
    return await work(limit.signal)
  } finally {
    clearTimeout(late)
    options.signal?.removeEventListener('abort', leave)
  }
}
