import { AirlockError } from '@airlock/contract'
import { sleep } from '@airlock/std'

/** Waits for the store, but no longer than that: for what goes on without its answer. The work itself is not ended. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const over = new AbortController()
  try {
    return await Promise.race([
      work,
      sleep(ms, over.signal).then(() => {
        throw new AirlockError('store_unavailable')
      }),
    ])
  } finally {
    over.abort()
  }
}
