import type { ServerResponse } from 'node:http'
import { AirlockError } from '@airlock/contract'

/** Waits for the work, or throws once its caller has hung up: nobody is there to be answered. */
export async function orGone<T>(work: Promise<T>, response: ServerResponse): Promise<T> {
  if (response.destroyed) throw hungUp()
  const { promise, reject } = Promise.withResolvers<never>()
  const leave = (): void => reject(hungUp())
  response.once('close', leave)
  try {
    return await Promise.race([work, promise])
  } finally {
    response.off('close', leave)
  }
}

function hungUp(): AirlockError {
  return new AirlockError('timeout', 'The caller hung up.')
}
