import { createHash, timingSafeEqual } from 'node:crypto'

/** Who may drive a session. Only its hash is kept, and comparing tells nothing by its time. */
export class SessionToken {
  readonly #hash: Buffer

  constructor(token: string) {
    this.#hash = hash(token)
  }

  isOpenedBy(token: string): boolean {
    return timingSafeEqual(this.#hash, hash(token))
  }
}

function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
