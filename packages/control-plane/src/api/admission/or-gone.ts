import type { ServerResponse } from 'node:http'
import { AirlockError } from '@airlock/contract'

/** Waits for the work. Throws as soon as the caller hangs up. */
export async function orGone<T>(work: Promise<T>, response: ServerResponse): Promise<T> {
  throwIfGone(response)
  const { promise, reject } = Promise.withResolvers<never>()
  const leave = (): void => reject(hungUp())
  response.once('close', leave)
  try {
    return await Promise.race([work, promise])
  } finally {
    response.off('close', leave)
  }
}

export function throwIfGone({ destroyed }: ServerResponse): void {
  if (destroyed) throw hungUp()
}

function hungUp(): AirlockError {
  return new AirlockError('timeout', 'The caller hung up.')
}
