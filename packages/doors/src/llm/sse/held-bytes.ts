const FIRST_SIZE = 4096

/** Bytes that wait, in one buffer that doubles: a byte at a time takes no more memory or time than all at once. */
export class HeldBytes {
  #buffer = Buffer.alloc(0)
  #length = 0

  get length(): number {
    return this.#length
  }

  append(bytes: Buffer): void {
    const needed = this.#length + bytes.length
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(FIRST_SIZE, needed, 2 * this.#buffer.length))
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    bytes.copy(this.#buffer, this.#length)
    this.#length = needed
  }

  /** Good until the next `append`. */
  view(from: number, to: number): Buffer {
    return this.#buffer.subarray(from, to)
  }

  /** Gives the bytes away; none is held then. */
  take(): Buffer {
    const taken = this.view(0, this.#length)
    this.#buffer = Buffer.alloc(0)
    this.#length = 0
    return taken
  }
}
