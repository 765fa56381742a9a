import { AirlockError } from '@airlock/contract'
import { encodingsOf } from './encodings.ts'

/** No ordinary answer holds a text of this length by chance. */
const LEAST = 16
const MOST = 2048

/** Throws `key_unavailable` when the file does not hold one key on one line. */
export function parseKey(file: Buffer): Key {
  const text = file.toString('latin1').replace(/\r?\n$/u, '')
  if (text.length >= LEAST && text.length <= MOST && /^[\x21-\x7e]+$/.test(text)) return new Key(text)
  throw new AirlockError('key_unavailable', `A key is one line of ${LEAST} to ${MOST} visible ASCII characters.`)
}

/** The key of one upstream. Nothing prints it: it has no field that is enumerable. */
export class Key {
  readonly #text: string
  /** The key as an answer could hold it. */
  readonly #encodings: readonly Buffer[]

  constructor(text: string) {
    this.#text = text
    this.#encodings = encodingsOf(text)
  }

  /** For the one header that it goes into. */
  reveal(): string {
    return this.#text
  }

  get encodings(): readonly Buffer[] {
    return this.#encodings
  }
}
