import { AirlockError } from '@airlock/contract'
import { deadline } from '@airlock/std'

/** How long a guest may keep us waiting for any one thing. */
export const ANSWER_MS = 30_000

/** Does what waits for the guest, for `ms` at most (no limit when undefined); `signal` is the caller's. */
export async function withinDeadline<T>(
  work: (limit: AbortSignal | undefined) => Promise<T>,
  options: { readonly ms: number | undefined; readonly signal?: AbortSignal | undefined },
): Promise<T> {
  if (options.ms === undefined) return await work(options.signal)
  const limit = deadline(options.ms, options.signal)
  try {
    return await work(limit)
  } catch (error) {
    if (!limit.aborted || error !== limit.reason || options.signal?.aborted) throw error
    throw new AirlockError('timeout', 'the sandbox did not answer in time', { cause: error })
  }
}
