import type { Principal } from '@airlock/contract'

/** Turns what a request carries into a principal. Fails closed: anything not understood is `unauthenticated`. */
export interface Authenticator {
  /** `authorization` is the header as it came, or undefined. Throws `AirlockError('unauthenticated')`. */
  authenticate(authorization: string | undefined, requestId: string): Promise<Principal>
}
