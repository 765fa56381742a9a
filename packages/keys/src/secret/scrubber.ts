import { AirlockError } from '@airlock/contract'

/**
 * Passes an answer on as it comes, and never a byte of the key. What may be the beginning of one is held back until the
 * next piece tells; everything else goes out at once.
 */
export class Scrubber {
  readonly #encodings: readonly Buffer[]
  #held: Buffer = Buffer.alloc(0)

  constructor(encodings: readonly Buffer[]) {
    this.#encodings = encodings
  }

  /** What may go out now. Throws `upstream_leaked_key` when the key is in it. */
  push(chunk: Buffer): Buffer {
    const all = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    if (this.#encodings.some((one) => all.includes(one))) throw new AirlockError('upstream_leaked_key')
    const from = this.#firstBeginning(all)
    // A copy: what is held must not keep the whole piece in memory.
    this.#held = Buffer.from(all.subarray(from))
    return all.subarray(0, from)
  }

  /** What was held back and is not the key, for there is no more of it. */
  end(): Buffer {
    return this.#held
  }

  /** Where the first text begins that runs into the end and may go on as a key. */
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

/** Throws `upstream_leaked_key` when the key is in a text. */
export function throwOnLeak(text: string, encodings: readonly Buffer[]): void {
  const bytes = Buffer.from(text, 'latin1')
  if (encodings.some((one) => bytes.includes(one))) throw new AirlockError('upstream_leaked_key')
}
