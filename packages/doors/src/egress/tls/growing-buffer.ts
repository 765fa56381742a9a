/** Bytes that come in pieces. Time and memory are linear in their number, however small the pieces are. */
export class GrowingBuffer {
  #room = Buffer.allocUnsafe(512)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Valid until the next push. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length)
  }

  push(piece: Buffer): void {
    const length = this.#length + piece.length
    if (length > this.#room.length) {
      const wider = Buffer.allocUnsafe(Math.max(length, 2 * this.#room.length))
      this.#room.copy(wider, 0, 0, this.#length)
      this.#room = wider
    }
    piece.copy(this.#room, this.#length)
    this.#length = length
  }
}
