import { isAirlockError } from '@airlock/contract'

/** A connection ended before its answer did. Whether the call was heard is not known. */
export class BrokenConnection extends Error {
  constructor(cause: unknown) {
    super('the connection broke', { cause })
    this.name = 'BrokenConnection'
  }
}

/**
 * Asks on a connection that was kept from an earlier call and, when `BrokenConnection` tells that it had died meanwhile, once
 * more on a fresh one. Precondition: asking twice is asking once.
 */
export async function askOnceMore<T>(kept: () => Promise<T>, fresh: () => Promise<T>): Promise<T> {
  try {
    return await kept()
  } catch (error) {
    if (!(error instanceof BrokenConnection)) throw error
    return await fresh().catch((second: unknown) => {
      // The first may have been heard: that nobody hears the second does not tell that nothing happened.
      throw isAirlockError(second) ? second : new BrokenConnection(second)
    })
  }
}
