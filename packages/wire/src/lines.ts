import { AirlockError } from '@airlock/contract'

/** One message of the recorder, or one line of evidence, is never longer. */
export const MAX_LINE_BYTES = 1024 * 1024

const NEWLINE = 0x0a

/** Cuts a stream of bytes into lines. Throws on a line above the bound: the sender is broken or hostile. */
export class LineSplitter {
  #parts: Buffer[] = []
  #length = 0

  push(chunk: Buffer): string[] {
    const lines: string[] = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#add(chunk.subarray(start, end))
      lines.push(Buffer.concat(this.#parts).toString('utf8'))
      this.#parts = []
      this.#length = 0
      start = end + 1
    }
    this.#add(chunk.subarray(start))
    return lines
  }

  /** Whether a line has begun and not ended. */
  get isWithin(): boolean {
    return this.#length > 0
  }

  #add(part: Buffer): void {
    this.#length += part.length
    if (this.#length > MAX_LINE_BYTES) throw new AirlockError('body_too_large', 'A line is too long.')
    if (part.length > 0) this.#parts.push(part)
  }
}
