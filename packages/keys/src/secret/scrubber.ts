import { AirlockError } from '@airlock/contract'
import { unescapeJson } from './unescape-json.ts'

/**
 * Passes an answer on as it comes, without a byte of the key, whichever of its characters are escaped as in JSON. A possible beginning of the key is held back until the next
 * piece; everything else goes out at once.
 */
export class Scrubber {
  readonly #encodings: readonly Buffer[]
  #held: Buffer = Buffer.alloc(0)

  constructor(encodings: readonly Buffer[]) {
    this.#encodings = encodings
  }

  /** Answers the bytes that may go out now. Throws `upstream_leaked_key` when the key is among them. */
  push(chunk: Buffer): Buffer {
    const all = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const { bytes, starts, pending } = unescapeJson(all)
    if (holdsAny(this.#encodings, all) || holdsAny(this.#encodings, bytes))
      throw new AirlockError('upstream_leaked_key')
    const unescapedFrom = starts[this.#firstBeginning(bytes)] ?? pending
    const from = Math.min(this.#firstBeginning(all), unescapedFrom)
    // A copy: what is held must not keep the whole piece in memory.
    this.#held = Buffer.from(all.subarray(from))
    return all.subarray(0, from)
  }

  /** Answers the bytes that were held back: the answer is over, so they are not the key. */
  end(): Buffer {
    return this.#held
  }

  /** Position of the first byte from which the rest may be the beginning of a key. */
  #firstBeginning(all: Buffer): number {
    return Math.min(all.length, ...this.#encodings.map((one) => beginningOf(one, all)))
  }
}

function beginningOf(encoding: Buffer, all: Buffer): number {
  const first = encoding[0] ?? 0
  let at = all.indexOf(first, Math.max(0, all.length - encoding.length + 1))
  while (at >= 0 && !all.subarray(at).equals(encoding.subarray(0, all.length - at))) at = all.indexOf(first, at + 1)
  return at < 0 ? all.length : at
}

/** Whether a key is in bytes, or in a text of bytes, whichever of its characters are escaped as in JSON. */
export function holdsKey(said: string | Buffer, encodings: readonly Buffer[]): boolean {
  const bytes = typeof said === 'string' ? Buffer.from(said, 'latin1') : said
  return holdsAny(encodings, bytes) || holdsAny(encodings, unescapeJson(bytes).bytes)
}

/** Throws `upstream_leaked_key` when the key is in a text. */
export function throwOnLeak(text: string, encodings: readonly Buffer[]): void {
  new Scrubber(encodings).push(Buffer.from(text, 'latin1'))
}

function holdsAny(encodings: readonly Buffer[], bytes: Buffer): boolean {
  return encodings.some((one) => bytes.includes(one))
}
