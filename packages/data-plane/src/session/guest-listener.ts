import type { Duplex } from 'node:stream'

/**
 * Where the guest of one sandbox comes in: it dials, we listen.
 *
 * **Who comes is the guest.** The listener lets nobody else in, by whatever it has for that: a directory that only the root of
 * the sandbox can enter, or a certificate. What comes in is not believed more for it, only taken for that sandbox.
 *
 * **Life.** It listens from `listen` to `close`, and never again after that. Connections belong to who accepts them: closing
 * resolves when nobody can come any more and all that came have ended.
 */
export interface GuestListener {
  listen(accept: (connection: Duplex) => void): Promise<void>
  close(): Promise<void>
}
