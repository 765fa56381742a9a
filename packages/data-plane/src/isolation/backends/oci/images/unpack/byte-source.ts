import { AirlockError } from '@airlock/contract'

/** Reads a stream of unknown length piece by piece. Holds one chunk, and never more than was asked for besides. */
export class ByteSource {
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)
  #left: number

  /** Reading more than `limit` bytes throws. */
  constructor(chunks: AsyncIterable<Buffer>, limit: number) {
    this.#chunks = chunks[Symbol.asyncIterator]()
    this.#left = limit
  }

  /** Exactly `count` bytes, or undefined when the stream has ended before the first of them. */
  async take(count: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = []
    let missing = count
    while (missing > 0) {
      const part = await this.#some(missing)
      if (!part && missing === count) return undefined
      if (!part) throw brokenOff()
      parts.push(part)
      missing -= part.length
    }
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
  }

  async *stream(count: number): AsyncGenerator<Buffer> {
    for (let missing = count; missing > 0;) {
      const part = await this.#some(missing)
      if (!part) throw brokenOff()
      missing -= part.length
      yield part
    }
  }

  /** Reads what is left and throws it away. */
  async drain(): Promise<void> {
    while (await this.#some(Number.MAX_SAFE_INTEGER));
  }

  async #some(most: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next()
      if (next.done === true) return undefined
      this.#rest = next.value
      this.#left -= next.value.length
      if (this.#left < 0) throw new AirlockError('template_invalid', 'The archive is too large.')
    }
    const part = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(part.length)
    return part
  }
}

export function brokenOff(): AirlockError {
  return new AirlockError('template_invalid', 'The archive breaks off.')
}
