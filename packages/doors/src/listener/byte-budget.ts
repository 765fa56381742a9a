import { AirlockError } from '@airlock/contract'

/** Bytes that are held at once. A share of a larger budget takes its bytes from both. */
export class ByteBudget {
  readonly #most: number
  readonly #whole: ByteBudget | undefined
  #held = 0

  constructor(most: number, whole?: ByteBudget) {
    this.#most = most
    this.#whole = whole
  }

  /** Answers how to give them back, which has an effect once. Throws `too_many_requests` when there is no room. */
  take(bytes: number): () => void {
    if (this.#held + bytes > this.#most)
      throw new AirlockError('too_many_requests', 'Too many large bodies are under way at once.')
    const release = this.#whole?.take(bytes)
    this.#held += bytes
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#held -= bytes
      release?.()
    }
  }
}
