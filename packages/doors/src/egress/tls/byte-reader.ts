/** Reads big-endian numbers and vectors with a length in front, and throws where the bytes end too soon. */
export class ByteReader {
  readonly #bytes: Buffer
  readonly #cut: () => Error
  #at = 0

  constructor(bytes: Buffer, cut: () => Error) {
    this.#bytes = bytes
    this.#cut = cut
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  uint(size: 1 | 2): number {
    return this.#take(size).readUIntBE(0, size)
  }

  skip(size: number): void {
    this.#take(size)
  }

  /** Its length is a number of `lengthSize` bytes. */
  vector(lengthSize: 1 | 2): ByteReader {
    return new ByteReader(this.#take(this.uint(lengthSize)), this.#cut)
  }

  rest(): Buffer {
    return this.#take(this.#bytes.length - this.#at)
  }

  /** Throws unless all was read. */
  end(): void {
    if (!this.isAtEnd) throw this.#cut()
  }

  #take(size: number): Buffer {
    if (this.#at + size > this.#bytes.length) throw this.#cut()
    this.#at += size
    return this.#bytes.subarray(this.#at - size, this.#at)
  }
}
