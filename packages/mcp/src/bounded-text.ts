/** What a model reads well is far less than what a sandbox may say. */
const HEAD_BYTES = 16 * 1024
const TAIL_BYTES = 48 * 1024

/** Text of any length in bounded memory: its beginning, its end, and how much is missing between them. */
export class BoundedText {
  readonly #head: Buffer[] = []
  #headLeft = HEAD_BYTES
  #tail = Buffer.alloc(0)
  #cutBytes = 0

  static of(text: string): BoundedText {
    const bounded = new BoundedText()
    bounded.push(Buffer.from(text))
    return bounded
  }

  get cutBytes(): number {
    return this.#cutBytes
  }

  push(bytes: Uint8Array): void {
    const first = bytes.subarray(0, this.#headLeft)
    if (first.length > 0) this.#head.push(Buffer.from(first))
    this.#headLeft -= first.length
    const joined = Buffer.concat([this.#tail, bytes.subarray(first.length)])
    this.#cutBytes += Math.max(0, joined.length - TAIL_BYTES)
    this.#tail = joined.subarray(-TAIL_BYTES)
  }

  /** Says in its middle what was cut. A character that the cut went through is left out. */
  text(): string {
    const head = Buffer.concat(this.#head)
    if (this.#cutBytes === 0) return Buffer.concat([head, this.#tail]).toString('utf8')
    const before = new TextDecoder().decode(head, { stream: true })
    const after = new TextDecoder().decode(this.#tail.subarray(continuationBytes(this.#tail)))
    return `${before}\n[${this.#cutBytes} bytes were cut here]\n${after}`
  }
}

/** How many bytes at the beginning belong to a character that began before. */
function continuationBytes(bytes: Uint8Array): number {
  const found = bytes.subarray(0, 3).findIndex((byte) => (byte & 0xc0) !== 0x80)
  return found === -1 ? Math.min(3, bytes.length) : found
}
